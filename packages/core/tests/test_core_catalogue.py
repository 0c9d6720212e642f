"""What core's own metadata says can be installed beside it."""

from haiku.rag.plugins.catalogue import extra_for, extras, is_first_party, normalized


def test_the_catalogue_holds_the_extras_that_stand_for_a_distribution() -> None:
    assert extras()["embed-local"] == "haiku-rag-embed-local"
    assert "default" not in extras()


def test_first_party_are_core_and_what_its_extras_name() -> None:
    assert is_first_party("haiku_rag_core")
    assert is_first_party("Haiku.Rag.LanceDB")
    assert not is_first_party("haiku-rag-acme")


def test_an_extra_is_found_by_name_or_by_kind_and_name() -> None:
    assert extra_for("storage", "lancedb") == "lancedb"
    assert extra_for("embedder", "local") == "embed-local"
    assert extra_for("embedder", "acme") == ""


def test_names_are_compared_as_the_index_does() -> None:
    assert normalized("Acme__Rag.x") == "acme-rag-x"
