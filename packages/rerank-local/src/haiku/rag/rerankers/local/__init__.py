"""The reranker `local`: late interaction over the token vectors of the model that comes with `embed-local`."""
