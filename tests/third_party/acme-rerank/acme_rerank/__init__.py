"""A reranker that counts neighbouring words."""
