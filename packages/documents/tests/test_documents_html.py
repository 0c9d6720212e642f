"""HTML."""

import pytest

from haiku.rag.converters.documents.html import HtmlConverter, declared_charset
from haiku.rag.errors import ConversionError

PAGE = """<!doctype html><html><head><title>My &amp; page</title><style>p {}</style></head><body>
<nav><a href="/">Menu</a></nav><header><h1>Page head</h1>Banner</header>
<main><p>Hello <b>wide</b>&nbsp;world &eacute;<br>next<script>no()</script></p></main>
<aside>Related</aside><footer>Imprint</footer></body></html>"""


@pytest.fixture
def convert(content):
    return lambda data: HtmlConverter().convert(content(data, "page.html"))


@pytest.fixture
def parts(convert):
    return lambda data: [(item.label, item.text) for item in convert(data).items]


def test_the_main_content_is_read_below_the_pages_heading(convert):
    document = convert(PAGE)
    assert [(item.label, item.text) for item in document.items] == [
        ("heading", "Page head"),
        ("paragraph", "Hello wide world é\nnext"),
    ]
    assert document.title == "My & page"
    assert document.content == "# Page head\n\nHello wide world é\nnext"


def test_boilerplate_is_left_out_of_pages_without_main(parts):
    page = "<nav>menu</nav><header>top</header><div role=banner>b</div><p>Text</p><aside>x</aside><footer>end</footer>"
    assert parts(page) == [("paragraph", "Text")]


def test_an_articles_own_header_is_content(parts):
    page = "<header>top</header><article><header><h1>Head</h1></header><p>Text</p><footer>By me</footer></article>"
    assert parts(page) == [("heading", "Head"), ("paragraph", "Text"), ("paragraph", "By me")]


def test_several_articles_are_all_read(parts):
    assert parts("<article>a</article><article>b</article>") == [("paragraph", "a"), ("paragraph", "b")]


def test_a_page_that_is_nothing_but_boilerplate_is_read_whole(parts):
    assert parts("<main></main><nav>Menu</nav><p hidden>no</p>") == [("paragraph", "Menu")]


def test_headings_have_levels_and_lose_permalinks(convert):
    items = convert("<h1>One</h1><h3>Three <a href=#x>¶</a></h3><h3>In C#</h3>").items
    assert [(item.level, item.text) for item in items] == [(1, "One"), (3, "Three"), (3, "In C#")]
    assert convert("<h2>Head</h2>x").title == "Head"


def test_lists_keep_their_nesting_and_numbers(parts):
    page = """<ul><li>one <ul><li>two</li></ul></li><li><p>three</p><p>more</p></li></ul>
    <ol start=4><li>four<br>b</li><li>five</li></ol><li>stray</li><dl><dt>Term<dd>Meaning</dl>"""
    assert parts(page) == [
        ("list_item", "- one"),
        ("list_item", "  - two"),
        ("list_item", "- three"),
        ("list_item", "  more"),
        ("list_item", "4. four\n  b"),
        ("list_item", "5. five"),
        ("paragraph", "stray"),
        ("paragraph", "Term"),
        ("paragraph", "Meaning"),
    ]


def test_tables_keep_their_cells(parts):
    page = """<table><caption>Cap</caption><tr><th>A<th colspan=2>B</tr><tr></tr>
    <tr><td>1<td>x <p>y</p>|<td><img alt=pic></tr></table>"""
    assert parts(page) == [
        ("caption", "Cap"),
        ("table", "| A | B |  |\n| --- | --- | --- |\n| 1 | x y \\| | pic |"),
    ]


def test_a_table_without_header_cells_has_no_rule(parts):
    assert parts("<table><tr><td>a<td>b</tr><tr><td>c<td>d</tr></table>") == [("table", "| a | b |\n| c | d |")]


def test_a_table_that_lays_out_a_page_is_walked_through(parts):
    assert parts("<table><tr><td><h2>Head</h2><p>Text</p></td></tr></table>") == [
        ("heading", "Head"),
        ("paragraph", "Text"),
    ]
    assert parts("<table role=presentation><tr><td>a</td><td>b</td></tr></table>") == [
        ("paragraph", "a"),
        ("paragraph", "b"),
    ]


def test_code_keeps_its_lines_and_its_language(parts):
    page = """<pre><code class="language-js">let a;
  b &lt; c<br>d</code></pre><div class="highlight-python"><div><pre>x<span>y</span></pre></div></div><pre>plain</pre>"""
    assert parts(page) == [
        ("code", "```js\nlet a;\n  b < c\nd\n```"),
        ("code", "```python\nxy\n```"),
        ("code", "plain"),
    ]


def test_pictures_quotes_and_captions_are_items(parts):
    page = "<p>See <img src=a alt='A  chart'> this</p><img src=b><blockquote>Q</blockquote>"
    page += "<figure><img alt=f><figcaption>Cap</figcaption></figure>"
    assert parts(page) == [
        ("paragraph", "See this"),
        ("picture", "A chart"),
        ("quote", "Q"),
        ("picture", "f"),
        ("caption", "Cap"),
    ]


@pytest.mark.parametrize(
    "head",
    [
        '<meta charset="shift_jis">',
        '<meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS">',
        '<?xml version="1.0" encoding="Shift_JIS"?>',
    ],
)
def test_the_pages_own_charset_is_honoured(convert, head):
    assert convert(f"{head}<p>ｱｲｳ 表".encode("shift_jis")).items[0].text == "ｱｲｳ 表"


def test_a_page_that_was_read_as_ascii_cannot_be_utf_16():
    assert declared_charset(b'<meta charset="utf-16">') == "utf-8"
    assert declared_charset(b"<p>none") is None


def test_null_characters_and_surrogates_by_number_are_replaced(parts):
    assert parts("<p>a&#0;b&#xD800;c</p>") == [("paragraph", "a\ufffdb\ufffdc")]


def test_deep_nesting_is_no_recursion(parts):
    assert parts("<div>" * 5000 + "deep") == [("paragraph", "deep")]


def test_a_page_of_a_title_alone_is_read_by_it(convert):
    assert convert("<title>Only</title><script>x</script>").content == "Only"


@pytest.mark.parametrize("page", ["", "<script>x</script>", "<p> </p><!-- c -->", "<frameset></frameset>"])
def test_a_page_without_text_is_refused(convert, page):
    with pytest.raises(ConversionError, match=r"'page\.html' is empty"):
        convert(page)


def test_a_number_longer_than_any_that_is_meant_counts_as_one(content):
    huge = "9" * 5000
    page = f"<ol start='{huge}'><li>entry</li></ol><table><tr><td colspan='{huge}'>cell</td><td>b</td></tr></table>"
    texts = [item.text for item in HtmlConverter().convert(content(page, "page.html")).items]
    assert texts == ["1. entry", "| cell | b |"]
