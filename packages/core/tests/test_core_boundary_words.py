"""What a storage engine's own sentence becomes on its way to a caller."""

from dataclasses import replace

import pytest

from haiku.rag.contracts.storage import DatabaseRef
from haiku.rag.errors import DocumentConflictError, SourceUnavailableError, StorageError
from haiku.rag.federation.boundary import translate_error

REF = DatabaseRef(name="notes", location="s3://bucket-7/archive/notes.db", storage="memory")


def test_an_engines_sentence_about_a_configured_database_is_kept() -> None:
    seen = translate_error(StorageError("database 'notes' could not be written to: the disk is full."), REF)
    assert (type(seen), str(seen)) == (
        SourceUnavailableError,
        "database 'notes' could not be written to: the disk is full.",
    )


@pytest.mark.parametrize("part", ["bucket-7", "archive", "notes.db", "s3://bucket-7/archive/notes.db"])
def test_a_sentence_that_tells_where_a_configured_database_is_is_replaced(part: str) -> None:
    seen = translate_error(StorageError(f"database 'notes' in {part} is broken"), REF)
    assert part not in str(seen)
    assert str(seen).startswith("database 'notes' cannot be read (StorageError).")


def test_who_gave_the_path_hears_the_engines_own_words() -> None:
    error = StorageError("database 'notes' in bucket-7 is broken")
    assert translate_error(error, replace(REF, given=True)) is error


def test_a_conflict_between_documents_is_not_an_unavailable_database() -> None:
    error = DocumentConflictError("another document of database 'notes' has the URI 'a.md'.")
    assert translate_error(error, REF) is error
