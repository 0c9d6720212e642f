"""From HTML elements to items."""

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborNode

from haiku.rag.converters.documents.items import ItemList, fenced, table_text
from haiku.rag.converters.documents.prose import one_line
from haiku.rag.converters.documents.suffixes import word_set

NEVER = word_set(
    "script style template noscript svg math iframe object embed canvas audio video head title button select input "
    "textarea datalist dialog"
)
BOILERPLATE = word_set("nav aside footer header")
CONTENT_ROOTS = word_set("main article section blockquote figure")
BLOCKS = word_set(
    "address article aside blockquote body center dd details dialog div dl dt fieldset figcaption figure footer form "
    "header hgroup hr legend li main menu nav ol p section summary tbody td tfoot th thead tr ul caption"
)
HEADINGS = word_set("h1 h2 h3 h4 h5 h6")
LISTS = word_set("ul ol menu")
HTML_SPACE = re.compile("[ \t\n\r\f]+")
PERMALINK = re.compile(r"\s*¶\s*$|\s+[§#]\s*$")
LANGUAGE = re.compile(r"\b(?:language|lang|highlight-source|highlight)-([\w+#-]+)")
MAX_SPAN = 50


class HtmlReader:
    """Walks an element without recursion and adds an item for each block of text that it meets."""

    def __init__(self, items: ItemList, *, boilerplate: bool = False) -> None:
        self.items = items
        self._boilerplate = boilerplate
        self._text: list[str] = []
        self._pictures: list[str] = []
        self._lists: list[int | None] = []
        self._labels: list[str] = []
        self._marker = ""

    def read(self, root: LexborNode) -> None:
        """Everything inside the element."""
        stack = [(node, False) for node in reversed(list(_children(root)))]
        while stack:
            node, leaving = stack.pop()
            if leaving:
                self._leave(node)
            elif self._enter(node):
                stack.append((node, True))
                stack.extend((child, False) for child in reversed(list(_children(node))))
        self._flush()

    def _enter(self, node: LexborNode) -> bool:
        """Take a node in; whether its children are to be walked."""
        tag = node.tag or ""
        if tag == "-text":
            self._text.append(HTML_SPACE.sub(" ", node.text(deep=False)))
        elif tag == "br":
            self._text.append("\n")
        elif tag == "img":
            self._pictures.append(one_line(node.attributes.get("alt") or ""))
        elif tag in HEADINGS:
            self._flush()
            self.items.add("heading", PERMALINK.sub("", one_line(visible_text(node))), level=int(tag[1]))
        elif tag == "pre":
            self._flush()
            self.items.add("code", fenced(code_text(node), _language(node)))
        elif tag == "table" and _holds_data(node):
            self._flush()
            self._table(node)
        elif not tag.startswith("-") and not self._skipped(node, tag):
            self._open(node, tag)
            return True
        return False

    def _skipped(self, node: LexborNode, tag: str) -> bool:
        attributes = node.attributes
        if tag in NEVER or "hidden" in attributes:
            return True
        if self._boilerplate:
            return False
        if tag in ("nav", "aside") or attributes.get("role") in ("navigation", "banner", "contentinfo", "search"):
            return True
        return tag in BOILERPLATE and not _inside_content(node)

    def _open(self, node: LexborNode, tag: str) -> None:
        if tag in BLOCKS:
            self._flush()
        if tag in LISTS:
            self._lists.append(_first_number(node) if tag == "ol" else None)
        elif tag == "li":
            self._marker = self._next_marker()
        elif tag in ("blockquote", "figcaption"):
            self._labels.append("quote" if tag == "blockquote" else "caption")

    def _leave(self, node: LexborNode) -> None:
        tag = node.tag or ""
        if tag in BLOCKS:
            self._flush()
        if tag in LISTS:
            self._lists.pop()
        elif tag == "li":
            self._marker = ""
        elif tag in ("blockquote", "figcaption"):
            self._labels.pop()

    def _next_marker(self) -> str:
        number = self._lists[-1] if self._lists else None
        if number is None:
            return "- "
        self._lists[-1] = number + 1
        return f"{number}. "

    def _flush(self) -> None:
        """End a block: what has gathered becomes an item, and its pictures one each."""
        lines = (one_line(line) for line in "".join(self._text).split("\n"))
        text = "\n".join(filter(None, lines))
        pictures, self._text, self._pictures = self._pictures, [], []
        if text and self._lists:
            indent = "  " * (len(self._lists) - 1)
            self.items.add("list_item", indent + (self._marker or "  ") + text.replace("\n", f"\n{indent}  "))
            self._marker = ""
        else:
            self.items.add(self._labels[-1] if self._labels else "paragraph", text)
        for picture in pictures:
            self.items.add("picture", picture)

    def _table(self, table: LexborNode) -> None:
        caption = table.css_first("caption")
        if caption is not None:
            self.items.add("caption", one_line(visible_text(caption)))
        rows = [list(_cells(row)) for row in table.css("tr")]
        first = next(iter(table.css("tr")), None)
        header = first is not None and all(cell.tag == "th" for cell in _children(first) if cell.tag in ("td", "th"))
        header = header or table.css_first("thead tr") is not None
        self.items.add("table", table_text([row for row in rows if any(row)], header=header))


def visible_text(node: LexborNode) -> str:
    """The text below a node as it is read: blocks and line breaks set apart by a space, pictures by their text."""
    parts: list[str] = []
    for current in _descendants(node):
        tag = current.tag or ""
        before = current.prev
        if before is not None and before.tag in BLOCKS:
            parts.append(" ")
        if tag == "-text":
            parts.append(current.text(deep=False))
        elif tag == "img":
            parts.append(f" {current.attributes.get('alt') or ''} ")
        elif tag in BLOCKS or tag == "br":
            parts.append(" ")
    return "".join(parts)


def code_text(node: LexborNode) -> str:
    """The text below a node as it is written."""
    parts: list[str] = []
    for current in _descendants(node):
        if current.tag == "-text":
            parts.append(current.text(deep=False))
        elif current.tag == "br":
            parts.append("\n")
    return "".join(parts)


def _descendants(node: LexborNode) -> Iterator[LexborNode]:
    """What is below a node, in order, without what is never text."""
    stack = list(_children(node))[::-1]
    while stack:
        current = stack.pop()
        yield current
        if current.tag not in NEVER:
            stack.extend(list(_children(current))[::-1])


def _children(node: LexborNode) -> Iterator[LexborNode]:
    child = node.first_child
    while child is not None:
        yield child
        child = child.next


def _inside_content(node: LexborNode) -> bool:
    """Whether an article or the like holds a node: its header and footer are then content, not the page's."""
    parent = node.parent
    while parent is not None:
        if parent.tag in CONTENT_ROOTS:
            return True
        parent = parent.parent
    return False


def _holds_data(table: LexborNode) -> bool:
    """Whether a table is one of data, and not a grid that lays a page out."""
    if table.attributes.get("role") in ("presentation", "none"):
        return False
    return table.css_first("table table, h1, h2, h3, h4, h5, h6, pre, ul, ol") is None and bool(table.css("tr"))


def _cells(row: LexborNode) -> Iterator[str]:
    for cell in _children(row):
        if cell.tag in ("td", "th"):
            yield one_line(visible_text(cell))
            span = _number(cell.attributes.get("colspan"))
            yield from [""] * (min(span, MAX_SPAN) - 1)


def _language(pre: LexborNode) -> str:
    """The language that a code block's class names, on itself, the code inside, or the box around."""
    around = pre.parent
    for node in (pre.css_first("code"), pre, around, around.parent if around is not None else None):
        found = LANGUAGE.search(node.attributes.get("class") or "") if node is not None else None
        if found:
            return found[1]
    return ""


def _first_number(node: LexborNode) -> int:
    return _number(node.attributes.get("start"))


def _number(text: str | None) -> int:
    """A number in an attribute; 1 where it is none, or longer than any that is meant."""
    return int(text) if text and len(text) < 10 and text.isascii() and text.isdigit() else 1
