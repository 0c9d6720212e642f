"""Ends the process when it is imported."""
