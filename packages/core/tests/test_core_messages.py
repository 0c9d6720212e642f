"""The sentences about plugins that are interface, each compared whole."""

from haiku.rag.plugins import messages


def test_the_sentence_on_a_plugin_that_is_not_loaded() -> None:
    assert messages.not_loaded("acme", "acme-rerank", "1.2", "ImportError: no module named 'torch'") == (
        "plugin 'acme' (acme-rerank 1.2) was not loaded: ImportError: no module named 'torch'. "
        "Details: haiku-rag plugins check acme."
    )


def test_the_sentence_on_a_missing_library() -> None:
    text = messages.missing_dependency(
        "reranker", "cross-encoder", "sentence-transformers", "rerank-sentence-transformers"
    )
    assert text == (
        "reranker 'cross-encoder' needs sentence-transformers. "
        "Install it with: pip install 'haiku-rag-core[rerank-sentence-transformers]'."
    )
    assert messages.missing_dependency("reranker", "x", "torch", "") == (
        "reranker 'x' needs torch. Install torch and try again."
    )


def test_the_sentence_on_a_conflict() -> None:
    providers = ["haiku-rag-rerank-http 0.3 (haiku.rag.rerankers.http.plugin)", "acme-jina 2.0 (acme_jina.plugin)"]
    assert messages.conflict("reranker", "jina", providers) == (
        "reranker 'jina' is provided by two plugins: haiku-rag-rerank-http 0.3 (haiku.rag.rerankers.http.plugin) and "
        "acme-jina 2.0 (acme_jina.plugin). Uninstall one, set plugins.disabled, or set plugins.prefer."
    )


def test_the_sentence_on_an_unknown_name() -> None:
    assert messages.unknown("embedder", "olama", ["openai", "ollama", "local"]) == (
        "no embedder 'olama'. Known: local, ollama, openai. Did you mean 'ollama'?"
    )
    assert messages.unknown("storage", "x", []) == "no storage 'x'. No plugin that provides a storage is installed."
    assert messages.unknown("storage", "lancedb", [], extra="lancedb") == (
        "no storage 'lancedb'. No plugin that provides a storage is installed. "
        "Install it with: pip install 'haiku-rag-core[lancedb]'."
    )


def test_a_suggestion_ignores_case_and_is_left_out_when_nothing_is_near() -> None:
    assert messages.suggestion("SERACH", ["search", "storage"]) == " Did you mean 'search'?"
    assert messages.suggestion("zzz", ["search"]) == ""
