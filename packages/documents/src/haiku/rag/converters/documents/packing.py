"""Pieces of a section gathered into drafts of chunks that keep to the size."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from haiku.rag.contracts import TokenCounter
from haiku.rag.converters.documents.outline import Section
from haiku.rag.converters.documents.splitting import split
from haiku.rag.converters.documents.tables import split_table
from haiku.rag.models import DocumentItem

PARAGRAPHS, LINES = "\n\n", "\n"
TIGHT_LABELS = frozenset({"list_item", "heading", "title"})


@dataclass(frozen=True)
class Piece:
    """An item, or a part of one. `lead` is what stands between it and the part of the same item before it."""

    item: DocumentItem
    text: str
    tokens: int
    lead: str | None = None


@dataclass(frozen=True)
class Draft:
    """A chunk to be; `settled` once its real number of tokens is known to do."""

    headings: tuple[str, ...]
    pieces: tuple[Piece, ...]
    settled: bool = False

    @property
    def content(self) -> str:
        """The text of the pieces, with what stands between them."""
        text = self.pieces[0].text
        for previous, piece in zip(self.pieces, self.pieces[1:], strict=False):
            text += separator(previous, piece) + piece.text
        return text.rstrip().lstrip("\n")


def separator(previous: Piece, piece: Piece) -> str:
    """What stands between two pieces of one chunk."""
    if piece.lead is not None and piece.item is previous.item:
        return piece.lead
    tight = previous.item.label == piece.item.label and piece.item.label in TIGHT_LABELS
    return LINES if tight else PARAGRAPHS


class Packer:
    """Packs sections into drafts of at most `size` tokens, counted in few, large calls."""

    def __init__(self, size: int, count_tokens: TokenCounter) -> None:
        self._size = size
        self._count = count_tokens
        self._costs = dict(zip((PARAGRAPHS, LINES), count_tokens([PARAGRAPHS, LINES]), strict=True))

    def pack(self, sections: Sequence[Section]) -> list[Draft]:
        """The drafts in reading order. A draft lies in one section."""
        prefixes = self._count(["".join(f"{heading}\n" for heading in section.headings) for section in sections])
        rooms = [max(1, self._size - tokens) for tokens in prefixes]
        pieces = self._pieces(sections, rooms)
        drafts = [
            Draft(section.headings, group)
            for section, room, own in zip(sections, rooms, pieces, strict=True)
            for group in self._groups(own, room)
        ]
        return self._settle(drafts)

    def _pieces(self, sections: Sequence[Section], rooms: Sequence[int]) -> list[list[Piece]]:
        """Each section's items, the long ones in parts."""
        places = [(number, item) for number, section in enumerate(sections) for item in section.items]
        amounts = self._count([item.text for _, item in places])
        jobs = [
            (item.text, rooms[number])
            for (number, item), tokens in zip(places, amounts, strict=True)
            if tokens > rooms[number] and item.label != "table"
        ]
        parts = iter(split(jobs, self._count))
        pieces: list[list[Piece]] = [[] for _ in sections]
        for (number, item), tokens in zip(places, amounts, strict=True):
            if tokens <= rooms[number]:
                pieces[number].append(Piece(item, item.text, tokens))
            elif item.label == "table":
                pieces[number] += self._table(item, rooms[number])
            else:
                pieces[number] += self._measured([Piece(item, part.text, 0, part.lead) for part in next(parts)])
        return pieces

    def _table(self, item: DocumentItem, room: int) -> list[Piece]:
        return self._measured([Piece(item, part, 0) for part in split_table(item.text, room, self._count)])

    def _measured(self, pieces: Sequence[Piece]) -> list[Piece]:
        amounts = self._count([piece.text for piece in pieces])
        return [replace(piece, tokens=tokens) for piece, tokens in zip(pieces, amounts, strict=True)]

    def _groups(self, pieces: Sequence[Piece], room: int) -> Iterator[tuple[Piece, ...]]:
        """Neighbours together as long as they fit, by the sum of their tokens."""
        group: list[Piece] = []
        filled = 0
        for piece in pieces:
            joint = self._costs.get(separator(group[-1], piece), 1) if group else 0
            if group and filled + joint + piece.tokens > room:
                yield tuple(group)
                group, filled, joint = [], 0, 0
            group.append(piece)
            filled += joint + piece.tokens
        if group:
            yield tuple(group)

    def _settle(self, drafts: list[Draft]) -> list[Draft]:
        """Count what is really embedded; a sum may be off by what a tokenizer does where texts meet."""
        while waiting := [draft for draft in drafts if not draft.settled]:
            amounts = iter(self._count(["\n".join([*draft.headings, draft.content]) for draft in waiting]))
            drafts = [
                new for draft in drafts for new in ([draft] if draft.settled else self._fitted(draft, next(amounts)))
            ]
        return drafts

    def _fitted(self, draft: Draft, tokens: int) -> list[Draft]:
        excess = tokens - self._size
        if excess <= 0:
            return [replace(draft, settled=True)]
        if len(draft.pieces) > 1:
            middle = len(draft.pieces) // 2
            return [Draft(draft.headings, draft.pieces[:middle]), Draft(draft.headings, draft.pieces[middle:])]
        piece = draft.pieces[0]
        parts = split([(piece.text, max(1, piece.tokens - excess))], self._count)[0]
        if len(parts) == 1:
            return [replace(draft, settled=True)]
        cut = self._measured([replace(piece, text=part.text, lead=part.lead) for part in parts])
        return [Draft(draft.headings, (part,)) for part in cut]
