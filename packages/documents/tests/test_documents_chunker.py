"""The structural chunker keeps every word, every order and every size."""

import random
import re
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haiku.rag.converters.documents.chunker import StructuralChunker
from haiku.rag.models import Chunk, DocumentItem, ParsedDocument

Counter = Callable[[Sequence[str]], list[int]]


def by_word(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def by_character(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


def by_piece(texts: Sequence[str]) -> list[int]:
    """Like a byte-pair tokenizer: pieces of a word, and a token for each line end."""
    return [sum(-(-len(word) // 4) for word in text.split()) + text.count("\n") for text in texts]


def by_script(texts: Sequence[str]) -> list[int]:
    """Like WordPiece: ideographs and kana alone, runs of letters by fours."""
    return [len(re.findall(r"[\u3040-\u9fff]|[a-zA-Z]{1,4}|\d|[^\w\s]", text)) for text in texts]


def by_three_bytes(texts: Sequence[str]) -> list[int]:
    return [-(-len(text.encode()) // 3) for text in texts]


COUNTERS = [by_word, by_character, by_piece, by_script, by_three_bytes]
counters = pytest.mark.parametrize("counter", COUNTERS)


def document(*parts: tuple[str, str] | tuple[str, str, int]) -> ParsedDocument:
    items = [
        DocumentItem(ref=f"#/items/{number}", label=part[0], text=part[1], level=part[2] if len(part) == 3 else None)
        for number, part in enumerate(parts)
    ]
    return ParsedDocument(items=items)


def chunked(parsed: ParsedDocument, size: int = 20, counter: Counter = by_word) -> list[Chunk]:
    chunks = StructuralChunker().chunk(parsed, size=size, count_tokens=counter)
    assert [chunk.order for chunk in chunks] == list(range(len(chunks)))
    assert all(chunk.content.strip() for chunk in chunks)
    assert max(counter([chunk.contextualized() for chunk in chunks]), default=0) <= size
    return chunks


def contents(parsed: ParsedDocument, size: int = 20, counter: Counter = by_word) -> list[str]:
    return [chunk.content for chunk in chunked(parsed, size, counter)]


def squeezed(texts: Sequence[str]) -> str:
    return "".join("".join(texts).split())


def test_small_neighbours_share_a_chunk_up_to_the_size():
    parts = [("paragraph", f"{number} two three four five six seven") for number in range(4)]
    assert [content.count("seven") for content in contents(document(*parts))] == [2, 2]


def test_a_chunk_knows_its_headings_labels_refs_and_pages():
    parsed = document(
        ("heading", "Top", 1), ("heading", "Sub", 2), ("paragraph", "One."), ("list_item", "- a"), ("list_item", "- b")
    )
    parsed.items[2].page, parsed.items[3].page, parsed.items[4].page = 3, 2, 3
    assert chunked(parsed) == [
        Chunk(
            content="One.\n\n- a\n- b",
            headings=["Top", "Sub"],
            labels=["paragraph", "list_item"],
            doc_item_refs=["#/items/2", "#/items/3", "#/items/4"],
            page_numbers=[2, 3],
        )
    ]


def test_no_chunk_crosses_into_another_section():
    parsed = document(
        ("paragraph", "Before."),
        ("title", "T"),
        ("paragraph", "a"),
        ("heading", "One", 1),
        ("paragraph", "b"),
        ("heading", "Deep", 3),
        ("paragraph", "c"),
        ("heading", "Two", 1),
        ("paragraph", "d"),
        ("heading", "Two", 1),
        ("paragraph", "e"),
    )
    assert [(chunk.headings, chunk.content) for chunk in chunked(parsed)] == [
        ([], "Before."),
        (["T"], "a"),
        (["T", "One"], "b"),
        (["T", "One", "Deep"], "c"),
        (["T", "Two"], "d"),
        (["T", "Two"], "e"),
    ]


def test_headings_with_nothing_below_them_become_text():
    parsed = document(
        ("heading", "A", 1), ("heading", "B", 2), ("heading", "C", 2), ("paragraph", "c"), ("heading", "D", 1)
    )
    assert [(chunk.headings, chunk.content, chunk.labels) for chunk in chunked(parsed)] == [
        (["A"], "B", ["heading"]),
        (["A", "C"], "c", ["paragraph"]),
        ([], "D", ["heading"]),
    ]


def test_a_document_of_headings_alone_gives_a_chunk():
    assert contents(document(*[("heading", f"Head {number}", 1) for number in range(3)])) == ["Head 0\nHead 1\nHead 2"]


def test_headings_take_at_most_half_and_the_nearest_stay():
    far, near = " ".join(["far"] * 7), " ".join(["near"] * 7)
    parsed = document(("heading", far, 1), ("heading", near, 2), ("paragraph", "text"))
    assert [(chunk.headings, chunk.content) for chunk in chunked(parsed)] == [([], far), ([near], "text")]


def test_a_heading_too_long_for_any_path_becomes_text():
    long = " ".join(f"word{number}" for number in range(50))
    chunks = chunked(document(("heading", "A", 1), ("heading", long, 2), ("paragraph", "text")))
    assert [chunk.headings for chunk in chunks] == [["A"]] * len(chunks)
    assert " ".join(chunk.content for chunk in chunks).split() == [*long.split(), "text"]


def test_long_text_is_cut_between_sentences():
    sentences = [f"Sentence number {number} has exactly seven words." for number in range(12)]
    for content in contents(document(("paragraph", " ".join(sentences)))):
        assert content.startswith("Sentence")
        assert content.endswith("words.")


def test_long_text_is_cut_between_paragraphs_before_lines_and_lines_before_sentences():
    block = "one two. three\nfour five. six"
    for content in contents(document(("paragraph", "\n\n".join([block] * 10))), size=16):
        assert content.startswith("one")
        assert content.endswith("six")
    for content in contents(document(("paragraph", "\n".join(["one two. three"] * 30))), size=16):
        assert content.startswith("one")
        assert content.endswith("three")


@counters
@pytest.mark.parametrize(
    "text",
    [
        "人工智能是计算机科学的一个分支，它企图了解智能的实质。" * 200,
        "検索エンジンは文書を探します" * 300,
        "x" * 40_000,
        "https://example.org/" + "segment/" * 2000,
        "e\u0301" * 3000,
        " \n" * 5000 + "end" + "\t" * 3000 + "last",
        "short " * 30 + "y" * 3000 + " short" * 30,
        "混合 mixed text 文字 " * 500,
    ],
    ids=["chinese", "japanese", "no-spaces", "url", "accents", "blank", "long-word", "mixed"],
)
def test_text_of_any_shape_is_cut_to_the_size_without_loss(text, counter):
    assert squeezed(contents(document(("paragraph", text)), 64, counter)) == squeezed([text])


def test_chinese_is_cut_between_sentences():
    for content in contents(document(("paragraph", "人工智能是一个分支，它了解智能的实质。" * 50)), 64, by_character):
        assert content.startswith("人")
        assert content.endswith("。")


def test_accents_stay_with_their_letters():
    for content in contents(document(("paragraph", "e\u0301" * 500)), 33, by_character):
        assert not content.startswith("\u0301")
    assert squeezed(contents(document(("paragraph", "\u0301" * 500)), 32, by_character)) == "\u0301" * 500


@pytest.mark.parametrize("length", [10_000, 40_000])
def test_a_long_line_is_counted_in_few_calls_and_linear_work(length):
    calls: list[int] = []

    def counting(texts: Sequence[str]) -> list[int]:
        calls.append(sum(map(len, texts)))
        return by_character(texts)

    text = "".join(random.Random(3).choices("abcdefgh", k=length))
    StructuralChunker().chunk(document(("paragraph", text)), size=64, count_tokens=counting)
    assert len(calls) <= 12
    assert sum(calls) <= 8 * length


def test_a_word_that_a_tokenizer_reads_as_one_unknown_token_is_cut_all_the_same():
    parts = contents(document(("paragraph", "z" * 40_000)), 64, lambda texts: [1] * len(texts))
    assert max(map(len, parts)) <= 64 * 16 + 15
    assert squeezed(parts) == "z" * 40_000


def test_tables_are_cut_by_rows_with_their_header_repeated():
    rows = [f"| {number} | row {number} |" for number in range(30)]
    header = "| id | text |\n| --- | --- |"
    parts = contents(document(("table", "\n".join([header, *rows]))), 48)
    assert len(parts) > 1
    assert all(part.startswith(header + "\n|") for part in parts)
    assert [line for part in parts for line in part.split("\n")[2:]] == rows


def test_a_table_without_a_header_repeats_nothing():
    rows = [f"| {number} | row {number} |" for number in range(30)]
    assert [line for part in contents(document(("table", "\n".join(rows)))) for line in part.split("\n")] == rows


@counters
def test_a_huge_table_cell_is_cut_as_text(counter):
    cell = " ".join(f"w{number}" for number in range(4000))
    table = f"| id | text |\n| --- | --- |\n| 1 | {cell} |\n| 2 | end |"
    parts = contents(document(("table", table)), 64, counter)
    assert re.findall(r"w\d+", squeezed(parts).replace("w", " w")) == cell.split()
    assert "end" in parts[-1]


def test_a_header_that_takes_more_than_half_is_not_repeated():
    header = "| " + " | ".join(f"column{number}" for number in range(12)) + " |\n|" + " --- |" * 12
    parts = contents(document(("table", header + "\n" + "\n".join("| x |" for _ in range(30)))), 32)
    assert sum("column0" in part for part in parts) == 1


def test_code_is_cut_by_lines_and_keeps_its_indentation():
    lines = [f"    call({number})  # note" for number in range(40)]
    parts = contents(document(("code", "\n".join(["def f():", *lines]))), 24)
    assert "\n".join(parts).split("\n") == ["def f():", *lines]


def test_a_document_without_items_is_cut_by_its_content():
    (chunk,) = chunked(ParsedDocument(content="First.\n\nSecond."))
    assert (chunk.content, chunk.doc_item_refs, chunk.labels) == ("First.\n\nSecond.", [], ["paragraph"])


def test_a_document_without_text_has_no_chunks():
    assert chunked(ParsedDocument()) == []
    assert chunked(document(("picture", ""), ("paragraph", " \n"))) == []


def test_a_counter_that_adds_up_to_more_than_its_parts_is_still_obeyed():
    def superadditive(texts: Sequence[str]) -> list[int]:
        return [len(text.split()) + len(text.split()) ** 2 // 20 for text in texts]

    parts: list[tuple[str, str] | tuple[str, str, int]] = [
        ("heading", "Head of six words in all", 1),
        *[("paragraph", f"{number} b c d e") for number in range(40)],
        ("paragraph", "long " * 90),
        ("paragraph", "last " * 14),
    ]
    chunks = chunked(document(*parts), 30, superadditive)
    assert squeezed([chunk.content for chunk in chunks]) == squeezed([part[1] for part in parts[1:]])


def test_a_single_character_of_more_tokens_than_the_size_stands():
    chunks = StructuralChunker().chunk(
        document(("paragraph", "ab")), size=16, count_tokens=lambda texts: [99] * len(texts)
    )
    assert [chunk.content for chunk in chunks] == ["a", "b"]


words = st.integers(1, 60)
item_kinds = st.sampled_from(["title", "heading", "heading", "paragraph", "list_item", "code", "table", "caption"])
shapes = st.lists(
    st.tuples(item_kinds, words, st.integers(1, 5), st.sampled_from([" ", "\n", ". ", "\n\n"])), max_size=14
)


def numbered(shape: list[tuple[str, int, int, str]]) -> tuple[ParsedDocument, list[str]]:
    """A document of the shape, each of its words another one."""
    parts, count = [], 0
    for kind, amount, level, joint in shape:
        length = amount % 12 + 1 if kind in ("heading", "title") else amount
        mine = [f"w{number}" for number in range(count, count + length)]
        count += length
        text = joint.join(mine)
        if kind == "table":
            text = "\n".join(["| a | b |", "| --- | --- |", *(f"| {word} |" for word in mine)])
        parts.append((kind, text, level))
    return document(*parts), [f"w{number}" for number in range(count)]


@given(shapes, st.integers(24, 80), st.sampled_from([by_word, by_piece, by_script]))
def test_every_word_of_a_document_is_in_its_chunks_in_order(shape, size, counter):
    parsed, expected = numbered(shape)
    chunks = chunked(parsed, size, counter)
    found = iter(re.findall(r"w\d+", "\n".join(chunk.contextualized() for chunk in chunks)))
    assert all(word in found for word in expected)


@given(shapes, st.integers(24, 80), st.sampled_from(COUNTERS))
def test_chunks_refer_to_the_items_that_they_hold(shape, size, counter):
    parsed, _ = numbered(shape)
    chunks = chunked(parsed, size, counter)
    order = [int(ref.rpartition("/")[2]) for chunk in chunks for ref in chunk.doc_item_refs]
    assert all(first <= second for first, second in pairwise(order))
    bodies = {item.ref for item in parsed.items if item.label not in ("heading", "title")}
    assert bodies <= {ref for chunk in chunks for ref in chunk.doc_item_refs}


@given(st.text(max_size=600), st.integers(16, 40), st.sampled_from(COUNTERS))
def test_any_text_is_cut_without_loss(text, size, counter):
    assert squeezed(contents(document(("paragraph", text)), size, counter)) == squeezed([text])
