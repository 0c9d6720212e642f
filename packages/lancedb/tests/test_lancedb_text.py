"""What full text finds: scripts and spellings, phrases, identifiers and languages."""

import typing

import lancedb
import numpy as np
import pyarrow as pa
import pytest
from lancedb.query import MatchQuery

from haiku.rag.contracts import CandidateQuery
from haiku.rag.storage.lancedb.keywords import MOST_PHRASES, keyword_query
from haiku.rag.storage.lancedb.settings import LanceDBSettings, Language
from haiku.rag.storage.lancedb.storage import LanceDBStorage
from haiku.rag.storage.lancedb.text import camel_parts, folded, identifiers, searchable, words
from haiku.rag.storage.lancedb.text_index import (
    IDENTIFIERS_INDEX,
    TEXT_INDEX,
    TEXT_INDEXES,
    build_text_indexes,
    text_indexes,
    unfit_indexes,
)

pytestmark = pytest.mark.anyio

SENTENCES = {
    "latin": (
        "Die Straße führt nach München.",
        "His résumé was short.",
        "Łódź jest miastem w Polsce.",
        "l’homme est né à Paris",
        "a fine oﬃce",
        "Ｆｕｌｌ　ｗｉｄｔｈ",
        "Tiếng Việt rất hay",
        "soft\u00adhyphen\u00adated",
        "Donaudampfschifffahrtsgesellschaftskapitänsmütze",
    ),
    "turkish": ("İstanbul'da yaşıyorum", "ISPARTA güzeldir", "ışık açık"),
    "greek": ("Η Αθήνα είναι πρωτεύουσα", "ΟΔΥΣΣΕΥΣ ΓΥΡΙΣΕ", "ἄνθρωπος ἐστίν"),
    "cyrillic": ("Ёлка стоит в доме", "за\u0301мок на горе", "мой дом"),
    "arabic": ("ذهب الولد إلى المدرسة صباحا", "قَرَأَ الطَّالِبُ الكِتَابَ", "كتـــاب جديد"),
    "hebrew": ("בְּרֵאשִׁית בָּרָא אֱלֹהִים", "חיילי צה״ל חזרו", "ילדים משחקים בגן"),
    "devanagari": ("हिन्दी भारत की राजभाषा है", "मुझे किताबें पढ़ना पसंद है", "क़लम मेज़ पर है"),
    "thai": ("ประเทศไทยมีอากาศร้อนตลอดปี", "ฉันชอบกินข้าวผัดกุ้ง"),
    "khmer": ("ខ្ញុំស្រឡាញ់ភាសាខ្មែរណាស់", "ខ្ញុំទៅផ្សារ"),
    "lao": ("ພາສາລາວ",),
    "korean": ("저는 한국어를 공부하고 있습니다", "대통령은 서울에서 연설했다", "고양이가 잔다", "회의는 내일이다"),
    "japanese": (
        "東京都は日本の首都です",
        "全文検索エンジンを作る",
        "ﾃﾞｰﾀﾍﾞｰｽの設計",
        "吾輩は猫である。名前はまだ無い。",
    ),
    "chinese": ("我们今天讨论机器学习的基础知识", "北京是中华人民共和国的首都", "臺灣最大的城市是臺北"),
}
FOUND = [
    ("latin", "STRASSE", "Straße"),
    ("latin", "munchen", "München"),
    ("latin", "resume", "résumé"),
    ("latin", "re\u0301sume\u0301", "résumé"),
    ("latin", "lodz", "Łódź"),
    ("latin", "homme", "homme"),
    ("latin", "OFFICE", "oﬃce"),
    ("latin", "ﬁne", "fine"),
    ("latin", "full width", "Ｆｕｌｌ"),
    ("latin", "tieng viet", "Việt"),
    ("latin", "softhyphenated", "soft"),
    ("latin", "donaudampfschifffahrtsgesellschaftskapitansmutze", "Donau"),
    ("turkish", "istanbul", "İstanbul"),
    ("turkish", "ısparta", "ISPARTA"),
    ("turkish", "IŞIK", "ışık"),
    ("greek", "ΑΘΗΝΑ", "Αθήνα"),
    ("greek", "Οδυσσεύς", "ΟΔΥΣΣΕΥΣ"),
    ("greek", "ανθρωπος", "ἄνθρωπος"),
    ("cyrillic", "ЕЛКА", "Ёлка"),
    ("cyrillic", "замок", "за\u0301мок"),
    ("cyrillic", "мой", "мой"),
    ("arabic", "المدرسة", "المدرسة"),
    ("arabic", "الكتاب", "الكِتَابَ"),
    ("arabic", "كتاب", "كتـــاب"),
    ("hebrew", "בראשית", "בְּרֵאשִׁית"),
    ("hebrew", 'צה"ל', "צה״ל"),
    ("hebrew", "משחקים", "משחקים"),
    ("devanagari", "हिन्दी", "हिन्दी"),
    ("devanagari", "किताबें", "किताबें"),
    ("devanagari", "क\u093cलम", "क\u093cलम"),
    ("thai", "อากาศร้อน", "อากาศ"),
    ("thai", "ข้าวผัด", "ข้าวผัด"),
    ("khmer", "ស្រឡាញ់", "ស្រឡាញ់"),
    ("khmer", "ផ្សារ", "ផ្សារ"),
    ("lao", "ລາວ", "ລາວ"),
    ("korean", "한국어", "한국어"),
    ("korean", "서울", "서울"),
    ("korean", "대통령이", "대통령"),
    ("korean", "고양이", "고양이"),
    ("korean", "회의", "회의"),
    ("japanese", "日本", "日本"),
    ("japanese", "検索エンジン", "検索"),
    ("japanese", "データベース", "ﾃﾞｰﾀﾍﾞｰｽ"),
    ("japanese", "猫", "猫"),
    ("chinese", "机器学习", "机器学习"),
    ("chinese", "首都", "北京"),
    ("chinese", "臺北", "臺北"),
]
NAMES = [
    "C++ is a language",
    "C# is a language",
    "C is a language",
    ".NET is a runtime",
    "net weight",
    "call snake_case here",
    "snake in the case",
    "use kebab-case here",
    "std::vector<int> v;",
    "foo.bar.baz()",
    "install @scope/pkg",
    "version v1.2.3 is out",
    "version 3.2.1 is out",
    "see CVE-2024-1234.",
    "a node.js server",
    "a node of js",
    "parseHttpHeader(line)",
    "mail joe@example.org today",
    "私はF#が好き",
]
LANGUAGES = {
    "arabic": ("كتاب", "الكتاب", "من"),
    "danish": ("hund", "hundene", "og"),
    "dutch": ("boek", "boeken", "het"),
    "english": ("house", "houses", "because"),
    "finnish": ("talo", "talossa", "mutta"),
    "french": ("maison", "maisons", "même"),
    "german": ("kind", "kinder", "für"),
    "greek": ("δρόμος", "δρόμοι", "είναι"),
    "hungarian": ("könyv", "könyvek", "volt"),
    "italian": ("libro", "libri", "il"),
    "norwegian": ("hund", "hunden", "ikke"),
    "portuguese": ("livro", "livros", "não"),
    "romanian": ("carte", "cărți", "și"),
    "russian": ("книга", "книги", "его"),
    "spanish": ("libro", "libros", "los"),
    "swedish": ("hund", "hundar", "och"),
    "tamil": ("புத்தகம்", "புத்தகங்கள்", "ஒரு"),
    "turkish": ("kitap", "kitaplar", "için"),
}
"""A word, another form of it, and a stop word; several of those are no longer themselves once stemmed."""


def rows(texts):
    columns = {
        "content": pa.array(texts),
        "text": pa.array(map(searchable, texts), pa.large_string()),
        "identifiers": pa.array(map(identifiers, texts), pa.large_string()),
    }
    return pa.table(columns)


@pytest.fixture
async def chunks(tmp_path):
    """Makes a table of texts with both indexes; `later` ones come after the indexes were built."""
    connection = await lancedb.connect_async(tmp_path)

    async def indexed(texts, *, language=None, later=()):
        table = await connection.create_table("chunks", data=rows(list(texts)))
        await build_text_indexes(table, language, names=TEXT_INDEXES)
        if later:
            await table.add(rows(list(later)))
        return table

    return indexed


async def found(table, text, *, language=None):
    """The texts that a query finds, best first."""
    query = keyword_query(text, language=language)
    if query is None:
        return []
    answer = await table.query().nearest_to_text(query).select(["content", "_score"]).limit(1000).to_arrow()
    return answer.sort_by([("_score", "descending")])["content"].to_pylist()


@pytest.mark.parametrize("script", SENTENCES)
async def test_words_of_a_script_are_found_in_any_spelling(chunks, script):
    table = await chunks(SENTENCES[script], later=["nothing of that"])
    for _, text, expected in (case for case in FOUND if case[0] == script):
        assert expected in (await found(table, text))[0], text


@pytest.mark.parametrize(
    ("one", "other"),
    [("й", "и"), ("臺灣", "台湾"), ("カナ", "かな"), ("ñ", "ナ"), ("२०२४", "2024"), ("كتاب", "كتابي")],
)
async def test_letters_that_are_others_stay_apart(chunks, one, other):
    table = await chunks([one, other])
    assert await found(table, one) == [one]


async def test_a_korean_particle_is_looked_up_in_phrases_alone(chunks):
    table = await chunks(SENTENCES["korean"])
    assert await found(table, "대통령이") == [SENTENCES["korean"][1]]
    assert await found(table, '"대통령은 서울"') == [SENTENCES["korean"][1]]
    assert await found(table, '"대통령이"') == []


async def test_a_word_inside_a_run_is_found_and_one_across_its_words_is_not_a_phrase(chunks):
    table = await chunks(SENTENCES["chinese"] + SENTENCES["japanese"])
    assert await found(table, '"机器学习的基础"') == [SENTENCES["chinese"][0]]
    assert await found(table, '"日本の首都"') == [SENTENCES["japanese"][0]]
    assert await found(table, '"首都 日本"') == []


@pytest.mark.parametrize("late", [False, True], ids=["indexed", "not yet indexed"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"quick brown"', {0}),
        ("“Quick Brown”", {0}),
        ("＂quick brown＂", {0}),
        ('"quick brown" dog', {0}),
        ('dog "quick fox"', {1}),
        ('"quick" "fox"', {0, 1}),
        ('"quick brown" "quick brown"', {0}),
        ('"brown fox" "quick fox"', set()),
        ('"brown-fox"', {0}),
        ('quick "brown fox', {0, 1}),
        ('"" "  " "?!" quick', {0, 1}),
        ('24" and 27" dog', {2}),
        ('"parse http"', {3}),
    ],
    ids=ascii,
)
async def test_every_phrase_has_to_be_there_and_other_words_need_not(chunks, text, expected, late):
    texts = ["the quick brown fox", "a brown quick fox", "one dog", "parseHttpHeader"]
    table = await chunks(["other"], later=texts) if late else await chunks([*texts, "other"])
    assert set(await found(table, text)) == {texts[place] for place in expected}


async def test_words_beside_a_phrase_decide_the_order(chunks):
    table = await chunks(["quick brown cat", "quick brown fox", "fox"])
    assert await found(table, '"quick brown" fox') == ["quick brown fox", "quick brown cat"]


async def test_more_phrases_than_are_looked_up_count_as_words(chunks):
    table = await chunks(["alpha beta", "beta alpha"])
    many = '"alpha beta" ' * MOST_PHRASES
    assert await found(table, many + '"beta alpha" "gamma"') == ["alpha beta"]


@pytest.mark.parametrize("late", [False, True], ids=["indexed", "not yet indexed"])
async def test_an_identifier_is_found_whole_before_its_parts(chunks, late):
    table = await chunks(["other"], later=NAMES) if late else await chunks([*NAMES, "other"])
    for text, first in [
        ("c++", 0),
        ("C#", 1),
        (".net", 3),
        ("snake_case", 5),
        ("SNAKE_CASE", 5),
        ("kebab-case", 7),
        ("std::vector", 8),
        ("foo.bar.baz", 9),
        ("@scope/pkg", 10),
        ("v1.2.3", 11),
        ("1.2.3", 11),
        ("cve-2024-1234", 13),
        ("Node.js?", 14),
        ("parseHttpHeader", 16),
        ("parsehttpheader", 16),
        ("example.org", 17),
        ("f#", 18),
    ]:
        assert (await found(table, text))[0] == NAMES[first], text


def identifiers_asked(text):
    query = keyword_query(text, language=None)
    assert query is not None
    return query.queries[1][1].query


def test_compounds_of_a_sentence_are_words_and_its_other_identifiers_are_not():
    short, sentence = "well-known api", "is a well-known api, e.g. of and/or in it"
    assert identifiers_asked(short) == "well-known"
    assert isinstance(keyword_query(sentence, language=None), MatchQuery)
    assert identifiers_asked(f"{sentence} C++ x-15") == "c++ x-15"


async def test_the_parts_of_an_identifier_are_words(chunks):
    table = await chunks(NAMES)
    assert set(await found(table, "snake")) == {NAMES[5], NAMES[6]}
    assert await found(table, "vector") == [NAMES[8]]
    assert await found(table, "http header") == [NAMES[16]]
    assert await found(table, "scope") == [NAMES[10]]


async def test_a_phrase_holds_its_symbols(chunks):
    table = await chunks(["learn C++ now", "learn C now", "learn C# now"])
    assert await found(table, '"learn C++"') == ["learn C++ now"]
    assert await found(table, '"c#"') == ["learn C# now"]
    assert await found(table, '"learn c"') != []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C/C++ and C++17", "c/c++ c++ c++17"),
        ("self.__init__(my_module.my_func)", "self.__init__ __init__ my_module.my_func my_module my_func"),
        ("https://example.org/a/page.html", "https://example.org/a/page.html example.org page.html"),
        ("@scope/pkg, --dry-run; a->b.", "@scope/pkg dry-run a->b"),
        ("v1.2.3", "v1.2.3 1.2.3"),
        ("R&D in 3.14 s. Plain words, (only)!", "r&d 3.14"),
        ("変数foo_barを使う", "foo_bar"),
        ("Größe_2", "grösse_2"),
        ("C++ C++ c++", "c++"),
        ("-- ++ # a", ""),
        ("x_" * 200, ""),
        ("", ""),
    ],
    ids=ascii,
)
def test_identifiers_are_what_the_tokenizer_would_take_apart(text, expected):
    assert identifiers(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("call parseHTTPHeader2 here", ["parse", "http", "header", "2"]),
        ("getX", ["get", "x"]),
        ("HttpRequestParser", ["http", "request", "parser"]),
        ("GitHub iPhone McDonald JavaScript", []),
        ("plain words ALL CAPS", []),
    ],
)
def test_camel_case_is_taken_apart_where_it_is_code(text, expected):
    assert camel_parts(text) == expected


@pytest.mark.parametrize(
    "text",
    ["이라도" * 20_000 + "훿", "_" * 60_000, "aB " + "a" * 60_000, "aB " + "A" * 60_000, "a+" * 30_000, "a/" * 30_000],
    ids=lambda text: ascii(text[:6]),
)
def test_no_run_of_letters_or_signs_takes_more_than_its_length(text):
    # With time that grows by the square of the length each of these would take minutes, by its cube for ever.
    words(text)
    identifiers(text)
    camel_parts(text)


@pytest.mark.parametrize(
    "text", ["Straße İI ὈΔΥΣΣΕΎΣ", "שָׁלוֹם צה״ל", "和ﾃﾞｰﾀ½", "한국어를 고양이가", "\ud800a\0b"], ids=ascii
)
def test_folding_what_is_folded_changes_nothing(text):
    assert folded(folded(text)) == folded(text)
    assert words(words(text)) == words(text)


@pytest.mark.parametrize(
    "text",
    [
        '"',
        '""',
        '"""',
        '"a',
        'a"',
        '"a" "b',
        '"?" a',
        "“a",
        '"機械学習" "',
        "(" * 1000,
        "a:b AND NOT +c* ~2 ^3 \\",
        "\0\ud800",
        "word " * 20_000,
        '"' + "word " * 20_000 + '"',
        '"a" ' * 25_000,
        '"' * 100_000,
        "a_b " * 25_000,
        "x" * 100_000,
        "字" * 100_000,
    ],
    ids=lambda text: ascii(text[:12]) + str(len(text)),
)
@pytest.mark.parametrize("language", [None, "english"])
async def test_no_text_is_an_error(chunks, text, language):
    table = await chunks(["a b", "word"], language=language)
    await found(table, text, language=language)


@pytest.mark.parametrize("text", ["", " ", '"', '"?!" ...', "_", "++", "\0"])
def test_a_text_without_a_letter_or_digit_asks_for_nothing(text):
    assert keyword_query(text, language=None) is None


def test_plain_words_ask_one_field_by_the_plainest_query():
    assert keyword_query("Plain, words", language=None) == MatchQuery("plain, words", "text")  # type: ignore[call-arg]


def test_every_language_of_the_settings_is_tried_here():
    assert set(LANGUAGES) == set(typing.get_args(Language))


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_language_finds_other_forms_and_passes_over_stop_words(chunks, language):
    word, form, stop = LANGUAGES[language]
    table = await chunks([word, form, stop], language=language)
    assert set(await found(table, word, language=language)) == {word, form}
    assert set(await found(table, f"{form} {stop}", language=language)) == {word, form}
    assert await found(table, f"{stop}, {stop}", language=language) == []


async def test_without_a_language_forms_stay_apart_and_every_word_counts(chunks):
    table = await chunks(["house", "houses", "because"])
    assert set(await found(table, "houses because")) == {"houses", "because"}


async def test_a_stop_word_inside_a_phrase_counts(chunks):
    table = await chunks(["to be or not to be", "to bee", "war and peace", "war, peace"], language="english")
    assert await found(table, '"to be or not"', language="english") == ["to be or not to be"]
    assert await found(table, '"war and peace"', language="english") == ["war and peace"]
    assert await found(table, "to be or not", language="english") == []


async def test_a_word_whose_stem_is_a_stop_word_is_found(chunks):
    table = await chunks(["she is willing", "nothing"], language="english")
    assert await found(table, "willing", language="english") == ["she is willing"]


async def test_an_identifier_of_stop_words_is_looked_up_as_one(chunks):
    table = await chunks(["call to_be here", "call it"], language="english")
    assert await found(table, "to_be", language="english") == ["call to_be here"]


async def test_indexes_that_are_missing_or_made_for_another_language_are_told(chunks):
    table = await chunks(["houses"])
    assert await unfit_indexes(table, None) == []
    assert await unfit_indexes(table, "english") == [TEXT_INDEX]
    await build_text_indexes(table, "english", names=await unfit_indexes(table, "english"))
    assert await unfit_indexes(table, "english") == []
    assert await unfit_indexes(table, "german") == await unfit_indexes(table, None) == [TEXT_INDEX]
    assert await found(table, "house", language="english") == ["houses"]
    await table.drop_index(IDENTIFIERS_INDEX)
    assert await unfit_indexes(table, "english") == [IDENTIFIERS_INDEX]


async def test_an_index_without_positions_is_told(chunks):
    from lancedb.index import FTS

    table = await chunks(["houses"])
    text, _ = text_indexes(None)
    await table.create_index("text", config=FTS(**text.config | {"with_position": False}), name=TEXT_INDEX)
    assert await unfit_indexes(table, None) == [TEXT_INDEX]


async def test_rows_that_came_later_are_found_too(chunks):
    table = await chunks(["first"], later=["second_one"])
    assert [index.num_unindexed_rows for index in await table.list_indices()] == [1, 1]
    assert await found(table, "second_one") == ["second_one"]


async def test_texts_are_found_before_there_is_an_index(tmp_path):
    connection = await lancedb.connect_async(tmp_path)
    table = await connection.create_table("chunks", data=rows(["quick brown fox", "C++"]))
    assert await unfit_indexes(table, None) == list(TEXT_INDEXES)
    assert await found(table, '"quick brown"') == ["quick brown fox"]
    assert await found(table, "C++") == ["C++"]


def query(kind, text):
    return CandidateQuery(search_type=kind, depth=10, text=text, vector=np.ones(8, np.float32))


async def contents(database, table):
    return [chunk.content for chunk in await database.chunks_by_id(table["chunk_id"].to_pylist())]


async def test_a_database_searches_by_phrase_and_identifier(database, make):
    await database.write([make("a.md", "the quick brown fox"), make("b.md", "brown, quick"), make("c.md", "in C# now")])
    assert await contents(database, await database.search(query("fts", '"quick brown"'))) == ["the quick brown fox"]
    hybrid = await database.search(query("hybrid", "C#"))
    assert hybrid.num_rows == 3
    assert hybrid["keyword_rank"].null_count == 2


async def test_a_database_with_a_language_uses_it(open_database, make):
    engine = LanceDBStorage(LanceDBSettings(read_consistency_interval_seconds=0, fts_language={"notes": "english"}))
    database = await open_database(engine=engine)
    await database.write([make("a.md", "two houses"), make("b.md", "to be or not to be")])
    assert (await database.info()).language == "english"
    assert await contents(database, await database.search(query("fts", "the house"))) == ["two houses"]
    assert (await database.search(query("fts", "to be or not to be"))).num_rows == 0
    hybrid = await database.search(query("hybrid", "to be or not to be"))
    assert hybrid["keyword_rank"].null_count == hybrid.num_rows == 2
