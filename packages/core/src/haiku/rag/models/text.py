"""Text that every store and tokenizer can take, and addresses that everybody may see."""

from urllib.parse import urlsplit


def clean_text(text: str) -> str:
    """The text without NUL characters, its surrogate pairs joined and lone surrogates replaced by U+FFFD."""
    whole = text.replace("\0", "")
    try:
        whole.encode()
    except UnicodeEncodeError:
        return whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole


def shown_address(address: str) -> str:
    """A path as it is; a URL as messages give it, without user, password, query and fragment: they may hold secrets."""
    if "://" not in address or address.lower().startswith("file://"):
        return address
    try:
        parts = urlsplit(address)
    except ValueError:
        return address.partition(":")[0] + "://…"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
