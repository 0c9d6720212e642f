"""The lines of a PDF page, with their places."""

import re
from dataclasses import dataclass
from typing import Any

from pypdfium2 import raw

from haiku.rag.converters.documents.decoding import clean
from haiku.rag.converters.documents.items import Box

# PDFium gives a hyphen that ends a line as U+0002 and drops the line end after it.
HYPHEN = "\x02"
LINE = re.compile("[^\r\n\x02]+\x02?|\x02")
BLANK = re.compile(r"\s*\Z")


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of text. `box` is left, top, right, bottom in points from the page's top left corner.

    `size` is the height of its first letter's font; `placed` says that the box is known.
    """

    text: str
    box: Box
    size: float
    placed: bool
    hyphenated: bool


def page_lines(page: Any, textpage: Any) -> list[Line]:
    """The lines of a page in the order in which the file draws them."""
    characters = "".join(chr(raw.FPDFText_GetUnicode(textpage, index) or 32) for index in range(textpage.count_chars()))
    left, _, _, top = page.get_bbox()
    upright = page.get_rotation() == 0
    lines = []
    for found in LINE.finditer(characters):
        start, text = found.start(), found[0]
        if BLANK.match(text):
            continue
        start += len(text) - len(text.lstrip())
        x0, y0, x1, y1 = _bounds(textpage, start, found.end() - start)
        _, base, _, ascent = textpage.get_charbox(start, loose=True)
        sides = (x0 - left, top - max(y1, ascent), x1 - left, top - min(y0, base))
        lines.append(
            Line(
                text=clean(text.rstrip(HYPHEN)).strip(),
                box=(round(sides[0], 1), round(sides[1], 1), round(sides[2], 1), round(sides[3], 1)),
                size=round(ascent - base, 1),
                placed=upright,
                hyphenated=text.endswith(HYPHEN),
            )
        )
    return lines


def _bounds(textpage: Any, start: int, count: int) -> Box:
    """The rectangle around a run of characters, in the page's own coordinates: left, bottom, right, top."""
    boxes = [textpage.get_rect(index) for index in range(textpage.count_rects(start, count))]
    boxes = boxes or [textpage.get_charbox(start)]
    lefts, bottoms, rights, tops = zip(*boxes, strict=True)
    return min(lefts), min(bottoms), max(rights), max(tops)
