"""The sections of a document: what stands under one path of headings."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from haiku.rag.contracts import TokenCounter
from haiku.rag.converters.documents.prose import one_line, paragraphs
from haiku.rag.models import DocumentItem, ParsedDocument

HEADING_LABELS = frozenset({"title", "heading"})


@dataclass(frozen=True)
class Section:
    """Consecutive items below the same headings."""

    headings: tuple[str, ...]
    items: list[DocumentItem]


@dataclass(eq=False)
class Heading:
    """A heading while it is open. `shown` says that some section has it in its path, or as its text."""

    item: DocumentItem
    text: str
    level: int
    tokens: int
    shown: bool = False


@dataclass
class Outline:
    """Follows a document's headings and collects its sections.

    A path takes no more than `budget` tokens; where it would, the nearest headings stay. A heading that no path
    shows becomes text of the section above it, so that none is lost: one with nothing below it, or one too long.
    """

    budget: int
    sections: list[Section] = field(default_factory=list)
    _path: list[Heading] = field(default_factory=list)
    _last: list[Heading] = field(default_factory=list)

    def open(self, heading: Heading) -> None:
        """A heading begins: those of its level and deeper end."""
        self.close(heading.level)
        self._path.append(heading)

    def close(self, level: int) -> None:
        """Headings of the level and deeper end."""
        while self._path and self._path[-1].level >= level:
            ended = self._path.pop()
            if not ended.shown:
                self._show(ended, self._path)

    def add(self, item: DocumentItem) -> None:
        """An item below the open headings."""
        self._append(self._kept(self._path), item)

    def _kept(self, path: list[Heading]) -> list[Heading]:
        kept: list[Heading] = []
        room = self.budget
        for heading in reversed(path):
            if heading.tokens <= room:
                kept.insert(0, heading)
                room -= heading.tokens
        for depth, heading in enumerate(path):
            if heading not in kept and not heading.shown:
                self._show(heading, path[:depth])
        return kept

    def _show(self, heading: Heading, above: list[Heading]) -> None:
        heading.shown = True
        self._append(self._kept(above), heading.item)

    def _append(self, path: list[Heading], item: DocumentItem) -> None:
        for heading in path:
            heading.shown = True
        if not self.sections or self._last != path:
            self.sections.append(Section(tuple(heading.text for heading in path), []))
            self._last = path
        self.sections[-1].items.append(item)


def sections_of(document: ParsedDocument, *, size: int, count_tokens: TokenCounter) -> list[Section]:
    """A document's sections in reading order; of its content's paragraphs where it has no items with text."""
    items = [item for item in document.items if item.text.strip()] or _content_items(document.content)
    headings = iter(_headings([item for item in items if item.label in HEADING_LABELS], count_tokens))
    outline = Outline(budget=size // 2)
    for item in items:
        if item.label in HEADING_LABELS:
            outline.open(next(headings))
        else:
            outline.add(item)
    outline.close(0)
    return outline.sections


def _headings(items: Sequence[DocumentItem], count_tokens: TokenCounter) -> list[Heading]:
    texts = [one_line(item.text) for item in items]
    tokens = count_tokens([f"{text}\n" for text in texts]) if texts else []
    return [
        Heading(item, text, 0 if item.label == "title" else item.level or 1, amount)
        for item, text, amount in zip(items, texts, tokens, strict=True)
    ]


def _content_items(content: str) -> list[DocumentItem]:
    return [DocumentItem(ref="", label="paragraph", text=block) for block in paragraphs(content)]
