"""Tables cut by rows, with their header on every part."""

import re
from collections.abc import Iterator, Sequence

from haiku.rag.contracts import TokenCounter
from haiku.rag.converters.documents.splitting import split

RULE = re.compile(r"[\s|:+=-]*-[\s|:+=-]*")


def split_table(text: str, limit: int, count_tokens: TokenCounter) -> list[str]:
    """The parts of a table, each of at most about `limit` tokens.

    The header, two lines of which the second is a rule, stands on each of them, unless it takes more than half of
    the room; a row that is too long on its own is cut as text.
    """
    header, rows = _header_and_rows(text)
    cost = count_tokens([f"{header}\n"])[0] if header else 0
    if cost * 2 > limit:
        header, rows, cost = "", [*header.split("\n"), *rows], 0
    room = limit - cost
    parts = [part.text for row in split([(row, room) for row in rows], count_tokens) for part in row]
    amounts = count_tokens([f"{part}\n" for part in parts]) if parts else []
    return ["\n".join([header, *group] if header else group) for group in _groups(parts, amounts, room)] or [header]


def _header_and_rows(text: str) -> tuple[str, list[str]]:
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > 2 and RULE.fullmatch(lines[1]):
        return "\n".join(lines[:2]), lines[2:]
    return "", lines


def _groups(parts: Sequence[str], amounts: Sequence[int], room: int) -> Iterator[list[str]]:
    group: list[str] = []
    filled = 0
    for part, amount in zip(parts, amounts, strict=True):
        if group and filled + amount > room:
            yield group
            group, filled = [], 0
        group.append(part)
        filled += amount
    if group:
        yield group
