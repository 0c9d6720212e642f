"""Rerankers behind an HTTP service that speaks the `/rerank` protocol."""
