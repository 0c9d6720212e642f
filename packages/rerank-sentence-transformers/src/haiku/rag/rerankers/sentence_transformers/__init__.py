"""The reranker `sentence-transformers`: cross-encoders in process."""
