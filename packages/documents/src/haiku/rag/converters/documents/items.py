"""The items of a document while it is being read."""

from haiku.rag.converters.documents.decoding import clean
from haiku.rag.models import DocumentItem, ParsedDocument

Box = tuple[float, float, float, float]


class ItemList:
    """Collects items in reading order and gives them their refs."""

    def __init__(self) -> None:
        self.items: list[DocumentItem] = []

    def add(
        self, label: str, text: str, *, level: int | None = None, page: int | None = None, box: Box | None = None
    ) -> None:
        """Append an item, unless its text is blank."""
        if text.strip():
            ref = f"#/items/{len(self.items)}"
            self.items.append(DocumentItem(ref=ref, label=label, text=text, level=level, page=page, box=box))

    def first_heading(self) -> str | None:
        """The text of the first heading, on one line."""
        return next((" ".join(item.text.split()) for item in self.items if item.label == "heading"), None)

    def document(self, *, media_type: str, title: str | None = None, content: str | None = None) -> ParsedDocument:
        """The parsed document; without `content`, the text of the items, as Markdown where they are headings."""
        whole = self._content() if content is None else content
        return ParsedDocument(
            items=self.items,
            content=whole,
            title=clean(title).strip() or None if title else None,
            media_type=media_type,
        )

    def _content(self) -> str:
        parts: list[str] = []
        previous = ""
        for item in self.items:
            if parts:
                parts.append("\n" if item.label == previous == "list_item" else "\n\n")
            parts.append(f"{'#' * (item.level or 1)} {item.text}" if item.label == "heading" else item.text)
            previous = item.label
        return "".join(parts)


def fenced(code: str, language: str = "") -> str:
    """Code as an item's text: in a fence that names its language, where it has one."""
    code = code.rstrip().strip("\n")
    fence = "````" if "```" in code else "```"
    return f"{fence}{language}\n{code}\n{fence}" if language and code else code


def table_text(rows: list[list[str]], *, header: bool) -> str:
    """Rows as lines of `| a | b |`; below a header row stands a rule."""
    width = max((len(row) for row in rows), default=0)
    lines = ["| " + " | ".join(_cell(cell) for cell in [*row, *[""] * (width - len(row))]) + " |" for row in rows]
    if header and len(lines) > 1:
        lines.insert(1, "|" + " --- |" * width)
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
