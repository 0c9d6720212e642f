"""A command."""
