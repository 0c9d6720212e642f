"""Misspells a hook."""
