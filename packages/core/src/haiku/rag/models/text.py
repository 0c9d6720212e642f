"""Text that every store and tokenizer can take."""


def clean_text(text: str) -> str:
    """The text without NUL characters, its lone surrogates replaced by U+FFFD."""
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole.replace("\0", "")
