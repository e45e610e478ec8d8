"""The commands: what they do, what they refuse, and what they leave behind."""
