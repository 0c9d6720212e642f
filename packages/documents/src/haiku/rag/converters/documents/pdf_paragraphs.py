"""From the lines of PDF pages to paragraphs, list entries and headings."""

import re
from collections import Counter
from collections.abc import Sequence

from haiku.rag.converters.documents.items import Box, ItemList
from haiku.rag.converters.documents.pdf_lines import Line
from haiku.rag.converters.documents.prose import join_lines

BULLET = re.compile(r"(?:[•‣◦▪●○■–—*-]|\(?(?:\d{1,3}|[a-z])[.)])\s+\S")
SENTENCE_END = re.compile(r"[.!?:;。！？：；][\"'”’)\]]*$")
HEADING_FACTOR = 1.15
MAX_HEADING_CHARACTERS = 200
MAX_LEVEL = 6


def heading_levels(pages: Sequence[Sequence[Line]]) -> dict[float, int]:
    """The level of each font size that is larger than the running text's, the largest being 1."""
    amounts: Counter[float] = Counter()
    for lines in pages:
        for line in lines:
            amounts[line.size] += len(line.text)
    if not amounts:
        return {}
    body = amounts.most_common(1)[0][0]
    larger = sorted((size for size in amounts if size >= body * HEADING_FACTOR), reverse=True)
    return {size: min(level, MAX_LEVEL) for level, size in enumerate(larger, start=1)}


def add_paragraphs(items: ItemList, lines: Sequence[Line], page: int, levels: dict[float, int]) -> None:
    """Append a page's items."""
    block: list[Line] = []
    for line in lines:
        if block and not continues(block[-1], line):
            _add(items, block, page, levels)
            block = []
        block.append(line)
    if block:
        _add(items, block, page, levels)


def continues(previous: Line, line: Line) -> bool:
    """Whether a line goes on with the paragraph of the one before it."""
    if previous.hyphenated:
        return True
    if abs(previous.size - line.size) > 0.1 * max(previous.size, line.size) or BULLET.match(line.text):
        return False
    pitch = line.box[3] - previous.box[3]
    if line.size * -0.5 < pitch < line.size * 1.5:
        return line.box[0] < previous.box[2] and previous.box[0] < line.box[2]
    # The next column: the sentence has not ended, and the line does not begin one.
    return pitch < 0 and not SENTENCE_END.search(previous.text) and line.text[:1].islower()


def _add(items: ItemList, block: Sequence[Line], page: int, levels: dict[float, int]) -> None:
    text = _joined(block)
    level = levels.get(block[0].size)
    if level is not None and len(text) <= MAX_HEADING_CHARACTERS:
        label = "heading"
    else:
        label, level = ("list_item" if BULLET.match(text) else "paragraph"), None
    items.add(label, text, level=level, page=page, box=_box(block))


def _joined(block: Sequence[Line]) -> str:
    """The lines as one. A word that a hyphen parted is one word again; a capital or a number keeps the hyphen."""
    text = ""
    for previous, line in zip([None, *block], block, strict=False):
        if previous is not None and previous.hyphenated:
            text += line.text if line.text[:1].islower() else f"-{line.text}"
        else:
            text = join_lines([text, line.text])
    return f"{text}-" if block[-1].hyphenated else text


def _box(block: Sequence[Line]) -> Box | None:
    if not block[0].placed:
        return None
    lefts, tops, rights, bottoms = zip(*(line.box for line in block), strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)
