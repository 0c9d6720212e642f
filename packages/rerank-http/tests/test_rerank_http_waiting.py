"""What a `Retry-After` header means."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from haiku.rag.rerankers.http.waiting import wait_of


@pytest.mark.parametrize(("header", "seconds"), [("3", 3.0), ("0.25", 0.25), ("0", 0.0), ("-5", 0.0), (" 7 ", 7.0)])
def test_a_number_is_seconds(header: str, seconds: float) -> None:
    assert wait_of(header) == seconds


@pytest.mark.parametrize("header", ["", "soon", "nan", "inf", "Tue, 99 Foo 2026 00:00:00 GMT"])
def test_what_is_neither_number_nor_date_says_nothing(header: str) -> None:
    assert wait_of(header) is None


def test_a_date_is_counted_from_now() -> None:
    seconds = wait_of(format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True))
    assert seconds is not None
    assert 3000 < seconds <= 3600


@pytest.mark.parametrize("header", ["Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 2015 07:28:00 -0000"])
def test_a_date_that_has_passed_is_no_wait(header: str) -> None:
    assert wait_of(header) == 0.0
