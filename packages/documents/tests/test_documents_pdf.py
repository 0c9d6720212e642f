"""PDF files, made with reportlab."""

import io
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Frame, PageBreak, PageTemplate, Paragraph, SimpleDocTemplate, Table

from haiku.rag.converters.documents.pdf import PdfConverter
from haiku.rag.errors import ConversionError

STYLES = getSampleStyleSheet()
FOX = "The quick brown fox jumps over the lazy dog. " * 12


@pytest.fixture
def convert(content):
    return lambda data: PdfConverter().convert(content(data, "paper.pdf"))


def flowing(story: Iterable[tuple[str, str] | object], **known: str) -> bytes:
    target = io.BytesIO()
    flowables = [Paragraph(part[1], STYLES[part[0]]) if isinstance(part, tuple) else part for part in story]
    SimpleDocTemplate(target, **known).build(flowables)
    return target.getvalue()


def drawn(lines: Iterable[str], *, rotation: int = 0, **known: object) -> bytes:
    target = io.BytesIO()
    canvas = Canvas(target, pagesize=(400, 400), **known)
    canvas.setFont("Helvetica", 10)
    canvas.setPageRotation(rotation)
    for number, line in enumerate(lines):
        canvas.drawString(50, 300 - number * 12, line)
    canvas.showPage()
    canvas.save()
    return target.getvalue()


TWO_PAGES = [
    ("Heading1", "Chapter One"),
    ("BodyText", FOX),
    ("Heading2", "Part"),
    ("BodyText", "Second. " + FOX),
    ("BodyText", "• first bullet"),
    ("BodyText", "• second bullet"),
    Table([["a", "b"], ["1", "2"]]),
    PageBreak(),
    ("Heading1", "Chapter Two"),
    ("BodyText", "Other words."),
]


def test_pages_headings_paragraphs_and_list_entries_are_told_apart(convert):
    document = convert(flowing(TWO_PAGES, title="Report"))
    assert [(item.ref, item.label, item.level, item.page, item.text) for item in document.items] == [
        ("#/items/0", "heading", 1, 1, "Chapter One"),
        ("#/items/1", "paragraph", None, 1, FOX.strip()),
        ("#/items/2", "heading", 2, 1, "Part"),
        ("#/items/3", "paragraph", None, 1, f"Second. {FOX.strip()}"),
        ("#/items/4", "list_item", None, 1, "• first bullet"),
        ("#/items/5", "list_item", None, 1, "• second bullet"),
        ("#/items/6", "paragraph", None, 1, "a b"),
        ("#/items/7", "paragraph", None, 1, "1 2"),
        ("#/items/8", "heading", 1, 2, "Chapter Two"),
        ("#/items/9", "paragraph", None, 2, "Other words."),
    ]
    assert document.title == "Report"
    assert document.content.startswith("# Chapter One\n\nThe quick")


def test_boxes_count_from_the_top_left_corner(convert):
    box = convert(drawn(["Some words here"])).items[0].box
    assert box is not None
    left, top, right, bottom = box
    assert (round(left), round((top + bottom) / 2 / 10)) == (50, 10)
    assert (100 < right < 150, 8 < bottom - top < 15) == (True, True)


def test_a_turned_page_has_no_boxes(convert):
    assert convert(drawn(["Turned"], rotation=90)).items[0].box is None


def test_words_parted_at_a_line_end_are_joined(convert):
    lines = ["This is a para-", "graph with hyphen-", "ation and Anglo-", "Saxon words-"]
    assert convert(drawn(lines)).items[0].text == "This is a paragraph with hyphenation and Anglo-Saxon words-"


def test_two_columns_are_read_one_after_the_other(convert):
    target = io.BytesIO()
    template = BaseDocTemplate(target)
    template.addPageTemplates(PageTemplate(frames=[Frame(50, 600, 200, 150), Frame(300, 600, 200, 150)]))
    words = " ".join(f"word{number}" for number in range(80))
    template.build([Paragraph(words, STYLES["BodyText"]), Paragraph("Next begins. " * 3, STYLES["BodyText"])])
    document = convert(target.getvalue())
    assert document.items[0].text == words
    assert [item.text for item in document.items[1:]] == [("Next begins. " * 3).strip()]


def test_the_first_heading_is_the_title_where_the_file_names_none(convert):
    assert convert(flowing(TWO_PAGES)).title == "Chapter One"
    assert convert(drawn(["Just text"])).title is None


def test_characters_beyond_ascii_survive(convert):
    assert convert(drawn(["café – naïve £5"])).items[0].text == "café – naïve £5"


def test_a_blank_line_drawn_is_no_item(convert):
    assert [item.text for item in convert(drawn(["One", "   ", "", "Two"])).items] == ["One", "Two"]


def test_an_encrypted_file_is_refused(convert):
    with pytest.raises(ConversionError, match=r"^'paper\.pdf' is encrypted\. Save a copy without a password"):
        convert(drawn(["secret"], encrypt="password"))


def test_a_file_without_a_text_layer_is_refused(convert):
    with pytest.raises(ConversionError, match=r"^'paper\.pdf' holds no text layer \(scanned\?\)\."):
        convert(drawn([]))


@pytest.mark.parametrize("data", [b"%PDF-1.7 junk", b"not a pdf", drawn(["x"])[:200]])
def test_a_broken_file_is_refused(convert, data):
    with pytest.raises(ConversionError, match=r"^'paper\.pdf' is broken"):
        convert(data)


def test_an_empty_file_is_refused(convert):
    with pytest.raises(ConversionError, match=r"^'paper\.pdf' is empty"):
        convert(b"")


def test_files_are_read_from_many_threads(convert):
    data = flowing(TWO_PAGES)
    with ThreadPoolExecutor(8) as pool:
        contents = {document.content for document in pool.map(convert, [data] * 24)}
    assert len(contents) == 1
