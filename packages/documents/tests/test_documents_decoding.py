"""Bytes in any encoding become clean text."""

import codecs
import random

import pytest

from haiku.rag.converters.documents.decoding import clean, decode
from haiku.rag.errors import ConversionError

CHINESE = "人工智能是计算机科学的一个分支，它企图了解智能的实质。\n该领域的研究包括机器人、语言识别。"
TRADITIONAL = "人工智慧是電腦科學的分支。\n它研究機器人與語言辨識的方法。"
JAPANESE = "これは日本語の文章です。検索エンジンは文書を探します。\n東京都の図書館。"
GERMAN = "Die Größe der Bücher überrascht. Für Mädchen schön.\nÄrger."
FRENCH = "Le café est très bon à l'hôtel, été comme hiver."
RUSSIAN = "Поисковая система находит документы по запросу пользователя."
KOREAN = "검색 엔진은 문서를 찾습니다. 한국어 문장입니다."


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (CHINESE, "utf-8"),
        (CHINESE, "gbk"),
        (CHINESE, "gb18030"),
        (TRADITIONAL, "big5"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc_jp"),
        (JAPANESE, "iso2022_jp"),
        (GERMAN, "latin-1"),
        (FRENCH, "latin-1"),
        (FRENCH + " “Oui”…", "cp1252"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8_r"),
        (KOREAN, "euc_kr"),
        ("plain ASCII\nlines", "ascii"),
        (GERMAN, "utf-16"),
        (JAPANESE, "utf-16"),
        (JAPANESE, "utf-16-le"),
        (CHINESE, "utf-16-be"),
        (GERMAN, "utf-16-le"),
        ("ASCII only, twice as wide.", "utf-16-be"),
        (RUSSIAN, "utf-32"),
        (FRENCH, "utf-8-sig"),
    ],
)
def test_text_is_read_in_the_encoding_that_it_was_written_in(content, text, encoding):
    assert decode(content(text.encode(encoding))) == text


@pytest.mark.parametrize("mark", [codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE])
def test_a_byte_order_mark_decides(content, mark):
    encoding = {2: "utf-16-be", 4: "utf-32-be"}[len(mark)]
    assert decode(content(mark + GERMAN.encode(encoding))) == GERMAN


def test_a_very_short_chinese_text_is_not_taken_for_korean(content):
    assert decode(content("中文文本".encode("gbk"))) == "中文文本"


def test_a_long_text_is_told_by_its_beginning(content):
    text = (JAPANESE + "\n") * 3000
    assert decode(content(text.encode("shift_jis"))) == text


def test_the_source_may_name_the_encoding(content):
    data = "日本".encode("shift_jis")
    assert decode(content(data, encoding="Shift_JIS")) == "日本"


def test_the_source_is_believed_before_the_document(content):
    assert decode(content("é".encode("cp1252"), encoding="windows-1252"), declared="cp1251") == "é"


def test_the_document_may_name_its_encoding(content):
    assert decode(content("Привет".encode("cp1251")), declared="windows-1251") == "Привет"


@pytest.mark.parametrize("label", ["utf-8", "nonsense", "rot13", "hex", "unicode_escape", "ascii", "\0", "utf-16"])
def test_a_label_that_cannot_be_right_is_not_believed(content, label):
    assert decode(content(JAPANESE.encode("shift_jis"), encoding=label)) == JAPANESE


def test_latin_1_means_the_windows_superset(content):
    assert decode(content("“quoted” – 5 €".encode("cp1252"), encoding="iso-8859-1")) == "“quoted” – 5 €"


@pytest.mark.parametrize("label", ["iso-8859-1", "us-ascii", "windows-1252"])
def test_a_servers_default_label_does_not_spoil_utf_8(content, label):
    assert decode(content(FRENCH, encoding=label)) == FRENCH


def test_a_broken_byte_does_not_turn_utf_8_into_something_else(content):
    assert decode(content(JAPANESE.encode() + b"\xff")) == JAPANESE + "\ufffd"


def test_lone_surrogates_are_replaced_and_pairs_joined(content):
    data = b"one \xed\xa0\x80 two \xed\xa0\xbd\xed\xb8\x80 three"
    assert decode(content(data)) == "one \ufffd two \U0001f600 three"


def test_nul_bytes_are_dropped(content):
    assert decode(content(b"some text with a \0 zero byte and \0 another among many words")) == (
        "some text with a  zero byte and  another among many words"
    )


def test_nul_bytes_in_latin_1_do_not_make_it_utf_16(content):
    text = GERMAN.replace(" ", "  ")[:-1]
    data = text.encode("latin-1") + b"\0" * (1 + len(text) % 2)
    assert decode(content(data)) == text


def test_line_ends_become_one_kind():
    assert clean("a\r\nb\rc\nd") == "a\nb\nc\nd"


@pytest.mark.parametrize("data", [b"", b"  \r\n\t", b"\0\0\0\0", codecs.BOM_UTF8, "\u3000\u2003".encode()])
def test_a_file_without_text_is_empty(content, data):
    with pytest.raises(ConversionError, match=r"'file\.txt' is empty"):
        decode(content(data))


@pytest.mark.parametrize(
    "data",
    [
        random.Random(7).randbytes(5000),
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0" + random.Random(8).randbytes(500),
        b"\x7fELF\x02\x01\x01" + b"\0" * 3000,
        bytes(range(256)) * 20,
        b"\x01\x02\x03\x04\x05\x06" * 50,
        bytes(range(128, 256)) * 8 + b"\x81\x8d\x8f\x90\x9d" * 60,
    ],
)
def test_binary_data_is_refused(content, data):
    with pytest.raises(ConversionError, match="looks like binary data, not text"):
        decode(content(data))
