"""Seeded documents and filters, to compare an engine's answers with `selects`."""

from datetime import UTC, datetime, timedelta, timezone
from random import Random
from typing import Any, Literal

from haiku.rag.contracts.filter_values import kind_of
from haiku.rag.contracts.filters import And, Comparison, Filter, FilterOperator, FilterValue, Not, Or

KEYS = ("kind", "n", "author.name", "author", "key with blanks", 'quoted "key"', "missing")
WORDS = (
    "alpha",
    "Alpha",
    "50%",
    "a_b",
    "a\\b",
    "it's",
    "橋",
    "",
    "true",
    "1",
    "2026-03-01",
    "2026-03-01T12:00:00+02:00",
)
NUMBERS = (0, 1, -1, 2.5, 1.0, 2026, 2**53, 2**53 + 1, -0.5)
TEXT_FIELDS: tuple[str, ...] = ("id", "uri", "title")
ORDERS: tuple[FilterOperator, ...] = ("=", "!=", "<", "<=", ">", ">=")
ONE_OF: tuple[FilterOperator, ...] = ("=", "!=", "in")
PATTERN_PARTS = ("%", "_", "a", "b", "\\%", "\\_", "\\\\", "5", "-")
MARCH = datetime(2026, 3, 1, tzinfo=UTC)


class RandomFilters:
    """Everything follows from the seed. `moments` are tried for the moments of documents, beside others."""

    def __init__(self, seed: int, moments: tuple[datetime, ...] = (MARCH,)) -> None:
        self._random = Random(seed)  # noqa: S311 - nothing is secret here
        self._moments = moments

    def text(self) -> str | None:
        """A title or a URI, or none."""
        return self._random.choice((*WORDS, None))

    def metadata(self) -> dict[str, Any]:
        """Metadata under some of the keys."""
        found: dict[str, Any] = {key: self._held() for key in KEYS[:-1] if self._random.random() < 0.5}
        if self._random.random() < 0.5:
            found["author"] = {"name": self._held()}
        return found

    def filter(self, depth: int = 3) -> Filter:
        """A filter that means something."""
        if depth == 0 or self._random.random() < 0.4:
            return self.comparison()
        kind = self._random.choice((And, Or, Not))
        if kind is Not:
            return Not(self.filter(depth - 1))
        parts = tuple(self.filter(depth - 1) for _ in range(self._random.randrange(4)))
        return And(parts) if kind is And else Or(parts)

    def comparison(self) -> Comparison:
        """One comparison."""
        field = self._random.choice(
            (*TEXT_FIELDS, "created_at", "updated_at", *(f"metadata.{key}" for key in KEYS for _ in range(2)))
        )
        value = self._value(field)
        if isinstance(value, str) and self._random.random() < 0.3:
            return Comparison(field, "like", self._pattern())
        operator = self._random.choice(ONE_OF if kind_of(value) == "truth" else (*ORDERS, "in"))
        if operator == "in":
            return Comparison(field, "in", tuple(self._value(field) for _ in range(self._random.randrange(4))))
        return Comparison(field, operator, value)

    def _value(self, field: str) -> FilterValue:
        if field in TEXT_FIELDS:
            return self._random.choice(WORDS)
        if not field.startswith("metadata.") or self._random.random() < 0.2:
            return self._moment()
        return self._random.choice((*WORDS, *NUMBERS, True, False))

    def _moment(self) -> datetime:
        moment = self._random.choice((*self._moments, MARCH))
        shift = timedelta(hours=self._random.choice((0, 0, -2, 30)))
        return (moment + shift).astimezone(timezone(timedelta(minutes=self._random.choice((0, 330, -480)))))

    def _pattern(self) -> str:
        return "".join(self._random.choice(PATTERN_PARTS) for _ in range(self._random.randrange(5)))

    def _held(self) -> Any:
        one = (*WORDS, *NUMBERS, True, False, None)
        shape: Literal["one", "list", "object"] = self._random.choices(("one", "list", "object"), (8, 3, 1))[0]
        if shape == "one":
            return self._random.choice(one)
        if shape == "object":
            return {"inner": self._random.choice(one)}
        return [self._random.choice((*one, [1], {})) for _ in range(self._random.randrange(4))]
