"""Hadano: a document store for AI agents on one workstation, in one SQLite file."""

__version__ = "0.1.0"
