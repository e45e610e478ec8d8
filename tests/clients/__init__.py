"""Clients that others wrote, each through every tool and both doors."""
