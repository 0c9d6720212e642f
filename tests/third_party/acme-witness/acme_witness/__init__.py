"""Leaves a file where it was imported, to show that it was."""
