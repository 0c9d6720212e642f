"""The reranker of Cohere, through Cohere's own client."""
