"""Describes itself asynchronously."""
