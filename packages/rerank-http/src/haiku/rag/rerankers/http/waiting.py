"""How long a service asks to be left alone."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite


def wait_of(retry_after: str) -> float | None:
    """The seconds that a `Retry-After` header gives, as a number or as a date; None where it says neither.

    RFC 9110, section 10.2.3. Fractions are read too: some services send them.
    """
    try:
        seconds = float(retry_after)
    except ValueError:
        return _until(retry_after)
    return max(seconds, 0.0) if isfinite(seconds) else None


def _until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except (TypeError, ValueError):
        return None
    known = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max((known - datetime.now(UTC)).total_seconds(), 0.0)
