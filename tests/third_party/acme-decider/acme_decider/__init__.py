"""Decides where databases come from, how they are asked, and what a failure means."""
