"""Long text cut to a number of tokens."""

import re
import unicodedata
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from haiku.rag.contracts import TokenCounter

# From the best place to cut at to the worst; past the last one, any character will do.
BOUNDARIES = (
    re.compile(r"\n(?:[^\S\n]*\n)+"),
    re.compile(r"\n"),
    re.compile(r"(?<=[.!?…])\s+|(?<=[.!?…][\"'”’)\]])\s+|(?<=[。！？｡])(?![」』）”’])"),
    re.compile(r"(?<=[,;:])\s+|(?<=[、，；：､])"),
    re.compile(r"\s+"),
)
# Parts are aimed a little below the limit: tokens are spread unevenly, and a part over it has to be cut again.
SLACK = 1.08


@dataclass(frozen=True)
class Part:
    """A part of a text, and what stood between it and the part before."""

    text: str
    lead: str = ""


@dataclass(frozen=True)
class _Open:
    job: int
    part: Part
    limit: int
    fits: bool = False


def split(jobs: Sequence[tuple[str, int]], count_tokens: TokenCounter) -> list[list[Part]]:
    """The parts of each text, none over its limit of tokens unless it is a single character, none blank.

    Each round counts, in one call, only what the round before has cut, and at least halves it: time is linear in
    the length but for a logarithm, and nothing recurses.
    """
    work = [_Open(job, Part(text), limit) for job, (text, limit) in enumerate(jobs)]
    while waiting := [entry for entry in work if not entry.fits]:
        amounts = iter(count_tokens([entry.part.text for entry in waiting]))
        work = [new for entry in work for new in ([entry] if entry.fits else _cut(entry, next(amounts)))]
    parts: list[list[Part]] = [[] for _ in jobs]
    for entry in work:
        parts[entry.job].append(entry.part)
    return parts


def _cut(entry: _Open, tokens: int) -> Iterator[_Open]:
    text = entry.part.text
    if tokens <= entry.limit or len(text) == 1:
        yield _Open(entry.job, entry.part, entry.limit, fits=True)
        return
    target = ceil(len(text) / max(2, ceil(tokens * SLACK / max(1, entry.limit))))
    lead = entry.part.lead
    for gap, window in _windows(text, target):
        lead += gap
        if window.strip():
            yield _Open(entry.job, Part(window, lead), entry.limit)
            lead = ""
        else:
            lead += window


def _windows(text: str, target: int) -> Iterator[tuple[str, str]]:
    """The text in windows of at most `target` characters, each with the gap before it."""
    start, gap = 0, ""
    while len(text) - start > target:
        end, following = _boundary(text, start, start + target)
        yield gap, text[start:end]
        start, gap = following, text[end:following]
    yield gap, text[start:]


def _boundary(text: str, start: int, end: int) -> tuple[int, int]:
    """The best place to cut in the second half of a window: where a part ends and where the next begins."""
    middle = max(start + 1, start + (end - start) // 2)
    for pattern in BOUNDARIES:
        found = pattern.finditer(text, middle, end + 1)
        last = deque((match for match in found if match.start() <= end), maxlen=1)
        if last:
            return last[0].span()
    cut = end
    while cut > middle and _joins_on(text[cut]):
        cut -= 1
    return (cut, cut) if cut > middle else (end, end)


def _joins_on(character: str) -> bool:
    """Whether a character belongs to the one before it, as an accent or a variation selector does."""
    return unicodedata.category(character) in ("Mn", "Mc", "Me") or character in "\u200d\ufe0f"
