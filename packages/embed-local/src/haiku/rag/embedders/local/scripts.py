"""What of a text a model can read, judged by its letters."""

import unicodedata
from functools import lru_cache


def latin_share(text: str) -> float:
    """The part of a text's letters that are Latin, from 0 to 1; 1 for a text without letters."""
    letters = [character for character in text if character.isalpha()]
    return sum(map(_is_latin, letters)) / len(letters) if letters else 1.0


@lru_cache(maxsize=4096)
def _is_latin(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith("LATIN ")
