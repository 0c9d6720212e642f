"""Whether vectors are comparable."""

import logging
from dataclasses import replace

import pytest

from haiku.rag.contracts import DatabaseRef
from haiku.rag.errors import ConfigMismatchError
from haiku.rag.federation.identity import check_comparable, check_identity
from haiku.rag.models import EmbeddingIdentity

REF = DatabaseRef(name="a", location="memory://a", storage="memory")
OURS = EmbeddingIdentity(provider="hash", model="m1", dimension=8)


@pytest.mark.parametrize("recorded", [None, OURS])
@pytest.mark.parametrize("writable", [True, False])
def test_the_same_identity_or_none_is_fine(recorded: EmbeddingIdentity | None, writable: bool) -> None:
    check_identity(recorded, OURS, REF, writable=writable)
    check_identity(OURS, None, REF, writable=writable)


@pytest.mark.parametrize("change", [{"model": "m2"}, {"provider": "other"}, {"document_prefix": "passage: "}])
def test_another_model_at_the_same_dimension_warns_a_reader_and_stops_a_writer(
    change: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    recorded = replace(OURS, **change)  # type: ignore[arg-type]  # mypy takes the mapping for every field
    with caplog.at_level(logging.WARNING):
        check_identity(recorded, OURS, REF, writable=False)
    assert "database 'a' was written with" in caplog.text
    with pytest.raises(ConfigMismatchError):
        check_identity(recorded, OURS, REF, writable=True)


def test_another_dimension_stops_a_reader_too() -> None:
    with pytest.raises(ConfigMismatchError, match="hash/m1, 12 dimensions.*hash/m1, 8 dimensions"):
        check_identity(replace(OURS, dimension=12), OURS, REF, writable=False)


def test_two_databases_that_differ_are_named_with_what_each_was_written_with() -> None:
    other = replace(REF, name="b")
    different = replace(OURS, document_prefix="passage: ")
    with pytest.raises(ConfigMismatchError, match=r"'a' and 'b' cannot be searched together.*document prefix 'passage"):
        check_comparable([(REF, OURS), (other, different)])


def test_databases_that_record_nothing_are_not_compared() -> None:
    check_comparable([(REF, None), (REF, OURS), (REF, None), (REF, OURS)])
