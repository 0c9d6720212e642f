"""HTML and XHTML."""

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

from haiku.rag.config import AppConfig
from haiku.rag.contracts import SourceContent
from haiku.rag.converters.documents.decoding import decode, require_text
from haiku.rag.converters.documents.html_reader import HtmlReader, visible_text
from haiku.rag.converters.documents.items import ItemList
from haiku.rag.converters.documents.prose import one_line
from haiku.rag.models import ParsedDocument

CHARSET = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]+)|<\?xml[^>]{0,100}?encoding\s*=\s*[\"']([\w.:-]+)",
    re.IGNORECASE,
)
PROLOGUE_BYTES = 4096


class HtmlConverter:
    """The main content of a page: no scripts, menus, page headers or footers, unless there is nothing else."""

    def convert(self, content: SourceContent) -> ParsedDocument:
        """The parsed document. `ConversionError` where there is no text."""
        tree = LexborHTMLParser(decode(content, declared=declared_charset(content.data)))
        items = main_items(tree)
        title = page_title(tree)
        if not items.items:
            items.add("paragraph", title or "")
        document = items.document(media_type="text/html", title=title or items.first_heading())
        require_text(document.content, content.name)
        return document


def html_converter(_config: AppConfig) -> HtmlConverter:
    """The factory that the record names."""
    return HtmlConverter()


def add_html(items: ItemList, fragment: str) -> None:
    """Append the content of a piece of HTML."""
    body = LexborHTMLParser(fragment).body
    if body is not None:
        HtmlReader(items, boilerplate=True).read(body)


def declared_charset(data: bytes) -> str | None:
    """The charset that a page's own prologue names. One that was read as ASCII bytes cannot be UTF-16."""
    found = CHARSET.search(data[:PROLOGUE_BYTES])
    if found is None:
        return None
    label = (found[1] or found[2]).decode("ascii", "replace")
    return "utf-8" if label.lower().startswith(("utf-16", "utf16")) else label


def page_title(tree: LexborHTMLParser) -> str | None:
    """The text of the page's title element."""
    node = tree.css_first("head > title")
    return one_line(node.text()) or None if node is not None else None


def main_items(tree: LexborHTMLParser) -> ItemList:
    """The items of the main content; of the whole body, menus and all, where that leaves nothing."""
    body = tree.body
    if body is None:
        return ItemList()
    for root, boilerplate in ((_main(tree) or body, False), (body, False), (body, True)):
        items = _read(root, boilerplate=boilerplate)
        if items.items:
            break
    heading = _only_h1(tree)
    if heading and items.items and not any(item.level == 1 for item in items.items):
        items = _read(root, boilerplate=boilerplate, heading=heading)
    return items


def _read(root: LexborNode, *, boilerplate: bool, heading: str = "") -> ItemList:
    items = ItemList()
    items.add("heading", heading, level=1)
    HtmlReader(items, boilerplate=boilerplate).read(root)
    return items


def _main(tree: LexborHTMLParser) -> LexborNode | None:
    """The element that holds the page's own content: `main`, or the only article."""
    main = tree.css_first("main, [role=main]")
    if main is not None:
        return main
    articles = tree.css("article")
    return articles[0] if len(articles) == 1 else None


def _only_h1(tree: LexborHTMLParser) -> str:
    """The page's h1. It often stands in the page's header, outside of what is read, and still heads the content."""
    nodes = tree.css("h1")
    return one_line(visible_text(nodes[0])) if len(nodes) == 1 else ""
