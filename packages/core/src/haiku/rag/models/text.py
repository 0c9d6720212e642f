"""Text that every store and tokenizer can take."""


def clean_text(text: str) -> str:
    """The text without NUL characters, its surrogate pairs joined and lone surrogates replaced by U+FFFD."""
    whole = text.replace("\0", "")
    try:
        whole.encode()
    except UnicodeEncodeError:
        return whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole
