"""Imports a library that is not there."""
