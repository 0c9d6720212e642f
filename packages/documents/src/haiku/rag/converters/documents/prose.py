"""Lines and blank space of running text."""

import re
from collections.abc import Callable, Iterable

# Scripts written without spaces between words, and their punctuation.
UNSPACED = re.compile("[\u0e00-\u0eff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uff65\U00020000-\U0003ffff]")


def paragraphs(text: str) -> list[str]:
    """The blocks between blank lines, their own indentation kept."""
    return _blocks(text, lambda _line: True)


def top_level_blocks(text: str) -> list[str]:
    """Source code cut at the blank lines after which a line begins at the margin, unless it only closes something."""
    return _blocks(text, lambda line: line[0] not in " \t)]}")


def _blocks(text: str, begins: Callable[[str], bool]) -> list[str]:
    blocks: list[list[str]] = [[]]
    after_blank = False
    for line in text.split("\n"):
        if line.strip() and after_blank and begins(line):
            blocks.append([])
        after_blank = not line.strip()
        blocks[-1].append(line)
    joined = ("\n".join(block).rstrip().lstrip("\n") for block in blocks)
    return [block for block in joined if block.strip()]


def join_lines(lines: Iterable[str]) -> str:
    """Wrapped lines as one: a space where lines met, none between characters of scripts that write none."""
    joined = ""
    for line in filter(None, (line.strip() for line in lines)):
        tight = not joined or (UNSPACED.match(joined[-1]) and UNSPACED.match(line[0]))
        joined += line if tight else f" {line}"
    return joined


def one_line(text: str) -> str:
    """The text with every run of blank space as one space."""
    return " ".join(text.split())
