"""From bytes in any encoding to clean text."""

import codecs
import re

from charset_normalizer import from_bytes

from haiku.rag.contracts import SourceContent
from haiku.rag.errors import ConversionError
from haiku.rag.models.text import clean_text

BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# The encodings that plain files are met in; without the list rarely used relatives win on short texts.
LIKELY = [
    *("gb18030", "cp932", "euc_jp", "big5", "cp949", "cp1252", "cp1251", "koi8_r"),
    *("cp1250", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp874"),
]
# What a label on the web means: everyone who says Latin-1 or ASCII sends Windows' superset of it.
SUPERSETS = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
# Servers claim these unasked; bytes that are valid UTF-8 all the same are not in them.
DEFAULTS = {"ascii", "iso8859-1", "cp1252"}
NOT_CHARSETS = {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7", "mbcs", "oem"}
# ISO-2022-JP is ASCII but for these, so it would pass as UTF-8.
JIS_ESCAPES = (b"\x1b$@", b"\x1b$B", b"\x1b(J")
SAMPLE_BYTES = 1 << 17
CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\v\f\r\x1b")
CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\ufffd]")
PRINTABLE_ASCII = bytes([*range(32, 127), *b"\t\n\r"])
HANGUL = re.compile("[\uac00-\ud7a3]")


def decode(content: SourceContent, *, declared: str | None = None) -> str:
    """The text of a source, cleaned. `declared` is what the document says of itself; the source's word comes first.

    `ConversionError` where there is no text: nothing at all, or binary data.
    """
    if not content.data.strip(b" \t\r\n\0"):
        raise empty(content.name)
    text = _decode(content.data, [label for label in (content.encoding, declared) if label])
    if text is None:
        raise ConversionError(
            f"'{content.name}' looks like binary data, not text. Leave it out, or give it its real suffix."
        )
    return require_text(clean(text), content.name)


def require_text(text: str, name: str) -> str:
    """The text, unless it is blank: then `ConversionError`."""
    if not text.strip():
        raise empty(name)
    return text


def empty(name: str) -> ConversionError:
    """The error for a file that holds no text."""
    return ConversionError(f"'{name}' is empty: it holds no text to index. Leave it out, or fill it.")


def clean(text: str) -> str:
    """Well-formed text: surrogate pairs joined and lone ones replaced, no NUL, one kind of line end, no BOM."""
    return clean_text(text).replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")


def _decode(data: bytes, labels: list[str]) -> str | None:
    for mark, encoding in BOMS:
        if data.startswith(mark):
            return _plausible(data[len(mark) :].decode(encoding, "replace"))
    labels = [*labels, "iso2022_jp"] if any(escape in data for escape in JIS_ESCAPES) else labels
    candidates = [*(_as_labelled(data, label) for label in labels), _as_utf8(data)]
    for text in candidates:
        if text is not None and _plausible(text) is not None:
            return text
    return _as_utf16(data) or _detected(data)


def _as_labelled(data: bytes, label: str) -> str | None:
    try:
        name = codecs.lookup(label.strip()).name
        if name in NOT_CHARSETS or (name in DEFAULTS and _is_utf8(data)):
            return None
        return data.decode(SUPERSETS.get(name, name))
    except (LookupError, ValueError):
        return None


def _is_utf8(data: bytes) -> bool:
    try:
        return bool(data.decode())
    except UnicodeDecodeError:
        return False


def _as_utf8(data: bytes) -> str | None:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    wide = sum(character > "\x7f" for character in text) - broken
    return text if broken * 10 <= wide else None


def _as_utf16(data: bytes) -> str | None:
    """UTF-16 without a byte order mark: some unit has an empty half, and it reads as text in one of the orders."""
    sample = data[:SAMPLE_BYTES]
    empty = sample.count(0)
    ascii_share = 1 - len(sample.translate(None, PRINTABLE_ASCII)) / len(sample)
    if not empty or (empty < len(sample) / 5 and ascii_share > 0.75):
        return None
    readings = []
    for encoding in ("utf-16-le", "utf-16-be"):
        try:
            text = data.decode(encoding, "surrogatepass")
        except UnicodeDecodeError:
            continue
        readings.append((sum(text.count(mark) for mark in " \n\r\t0123456789,.、。，：！？"), text))
    score, best = max(readings, default=(0, ""))
    return _plausible(best) if score and all(map(_assigned, best[:SAMPLE_BYTES])) else None


def _assigned(character: str) -> bool:
    return not "\ue000" <= character <= "\uf8ff" and not "\ufdd0" <= character <= "\ufdef" and character < "\ufff0"


def _detected(data: bytes) -> str | None:
    """What statistics say of a sample, which ends at a line so that it cuts no character in two."""
    if len(data) - len(data.translate(None, CONTROLS)) > len(data) / 50:
        return None
    sample = data[:SAMPLE_BYTES]
    if len(sample) < len(data):
        sample = sample[: sample.rfind(b"\n") + 1] or sample
    matches = from_bytes(sample, cp_isolation=LIKELY)
    best = matches.best()
    if best is None:
        return None
    encoding = best.encoding
    if encoding == "cp949" and "gb18030" in {match.encoding for match in matches} and not _mostly_hangul(str(best)):
        encoding = "gb18030"
    return _plausible(data.decode(encoding, "replace"))


def _mostly_hangul(text: str) -> bool:
    return len(HANGUL.findall(text)) * 10 >= 9 * sum(character > "\x7f" and character.isalpha() for character in text)


def _plausible(text: str) -> str | None:
    """The text, unless more than one in twenty characters is a control or a replacement character."""
    return text if len(CONTROL.findall(text)) * 20 <= len(text) else None
