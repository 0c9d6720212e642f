"""Markdown."""

import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from haiku.rag.config import AppConfig
from haiku.rag.contracts import SourceContent
from haiku.rag.converters.documents.decoding import decode, require_text
from haiku.rag.converters.documents.html import add_html
from haiku.rag.converters.documents.items import ItemList, fenced, table_text
from haiku.rag.converters.documents.prose import join_lines
from haiku.rag.models import ParsedDocument

FRONT_MATTER = re.compile(
    r"---[^\S\n]*\n(?P<fields>\s*(?:#[^\n]*\n\s*)*[\w-]+[^\S\n]*:.*?)^(?:---|\.\.\.)[^\S\n]*$\n?",
    re.DOTALL | re.MULTILINE,
)
TITLE = re.compile(r"^title[^\S\n]*:[^\S\n]*(?P<title>[^\s>|].*)$", re.MULTILINE | re.IGNORECASE)
LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
# The parser leaves out what is nested deeper than its limit, and its own limit of 20 is met by quoted mail.
MAX_NESTING = 100


class MarkdownConverter:
    """CommonMark with tables and strikethrough; front matter gives the title and is left out."""

    def convert(self, content: SourceContent) -> ParsedDocument:
        """The parsed document. `ConversionError` where there is no text."""
        fields, body = split_front_matter(decode(content))
        title = front_matter_title(fields)
        reader = MarkdownReader()
        reader.read(_parser().parse(body))
        items = reader.items
        if not items.items:
            # Nothing that shows, such as a comment, or nesting past the limit: better as it is written than lost.
            items.add("paragraph", body.strip("\n") if body.strip() else fields.strip())
        title = title or items.first_heading()
        document = items.document(media_type="text/markdown", title=title, content=body.strip("\n") or None)
        require_text(document.content, content.name)
        return document


def markdown_converter(_config: AppConfig) -> MarkdownConverter:
    """The factory that the record names."""
    return MarkdownConverter()


def split_front_matter(text: str) -> tuple[str, str]:
    """The fields between the `---` lines at the top, and the rest."""
    found = FRONT_MATTER.match(text)
    return (found["fields"], text[found.end() :]) if found else ("", text)


def front_matter_title(fields: str) -> str | None:
    """The value of the field `title`, without its quotes."""
    found = TITLE.search(fields)
    if found is None:
        return None
    title = found["title"].strip()
    quoted = len(title) > 1 and title[0] == title[-1] and title[0] in "\"'"
    return title[1:-1].strip() if quoted else title


def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"maxNesting": MAX_NESTING}).enable(["table", "strikethrough"])


class MarkdownReader:
    """Turns the parser's flat list of tokens into items."""

    def __init__(self) -> None:
        self.items = ItemList()
        self._lists: list[int | None] = []
        self._marker = ""
        self._quotes = 0
        self._rows: list[list[str]] = []
        self._in_table = False

    def read(self, tokens: Sequence[Token]) -> None:
        """Every token in turn. A block's text comes in the `inline` token between its opening and closing ones."""
        opening: Token | None = None
        for token in tokens:
            if token.type == "inline":
                self._inline(token, opening)
            elif token.type in ("fence", "code_block"):
                self.items.add("code", fenced(token.content, (token.info.split() or [""])[0]))
            elif token.type == "html_block":
                add_html(self.items, token.content)
            else:
                self._structure(token)
            opening = token

    def _structure(self, token: Token) -> None:
        match token.type:
            case "bullet_list_open":
                self._lists.append(None)
            case "ordered_list_open":
                self._lists.append(int(token.attrs.get("start", 1)))
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
            case "list_item_open":
                self._marker = self._next_marker()
            case "list_item_close":
                self._marker = ""
            case "blockquote_open" | "blockquote_close":
                self._quotes += token.nesting
            case "table_open":
                self._rows, self._in_table = [], True
            case "tr_open":
                self._rows.append([])
            case "table_close":
                self.items.add("table", table_text(self._rows, header=True))
                self._in_table = False

    def _next_marker(self) -> str:
        number = self._lists[-1]
        if number is None:
            return "- "
        self._lists[-1] = number + 1
        return f"{number}. "

    def _inline(self, token: Token, opening: Token | None) -> None:
        text = inline_text(token.children or [])
        if self._in_table:
            self._rows[-1].append(" ".join([text, *picture_texts(token)]).strip())
            return
        if opening is not None and opening.type == "heading_open":
            self.items.add("heading", text.replace("\n", " "), level=int(opening.tag[1]))
        elif self._lists:
            self._list_item(text)
        else:
            self.items.add("quote" if self._quotes else "paragraph", text)
        for picture in picture_texts(token):
            self.items.add("picture", picture)

    def _list_item(self, text: str) -> None:
        """The first paragraph of an entry carries its marker, further ones only the indentation."""
        indent = "  " * (len(self._lists) - 1)
        lead = self._marker or "  "
        self._marker = ""
        if text.strip():
            self.items.add("list_item", indent + lead + text.replace("\n", f"\n{indent}  "))


def inline_text(children: Sequence[Token]) -> str:
    """The words of a block. Wrapped lines are joined; a hard break, or `<br>`, stays one."""
    lines: list[list[str]] = [[""]]
    for child in children:
        if child.type in ("text", "code_inline"):
            lines[-1][-1] += child.content
        elif child.type == "image":
            lines[-1][-1] = lines[-1][-1].rstrip(" ")
        elif child.type == "softbreak":
            lines[-1].append("")
        elif child.type == "hardbreak" or (child.type == "html_inline" and LINE_BREAK.match(child.content)):
            lines.append([""])
    return "\n".join(filter(None, map(join_lines, lines)))


def picture_texts(token: Token) -> list[str]:
    """The alternative texts of the pictures in a block."""
    return [child.content for child in token.children or [] if child.type == "image" and child.content.strip()]
