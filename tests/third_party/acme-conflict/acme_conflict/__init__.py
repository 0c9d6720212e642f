"""Provides a reranker of a name that is taken."""
