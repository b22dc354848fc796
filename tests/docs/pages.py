"""The code blocks of a Markdown page, and what a reader would do with each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(?P<language>\w*)(?P<rest>[^\n]*)\n(?P<text>.*?)^```$(?P<gap>\n*)", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """One fenced block.

    Parameters
    ----------
    language : str
        What stands behind the fence.
    title : str
        The file that a block of settings is said to be; empty where none is.
    text : str
        The contents.
    printed : str or None
        The ``text`` block that follows a ``python`` one: what it prints.
    """

    language: str
    title: str
    text: str
    printed: str | None = None


def blocks(page: Path) -> list[Block]:
    """All blocks of a page, output put to the block that prints it."""
    found: list[Block] = []
    adjacent = False
    for match in FENCE.finditer(page.read_text(encoding="utf-8")):
        language, text = match["language"], match["text"]
        if language == "text" and adjacent:
            found[-1] = Block("python", "", found[-1].text, text)
        else:
            title = re.search(r'title="([^"]*)"', match["rest"])
            found.append(Block(language, title[1] if title else "", text))
        adjacent = language == "python" and len(match["gap"]) == 1
    return found


def commands(block: Block) -> list[str]:
    """Lines of a shell block without their comments, continued lines as one."""
    lines = (line.split(" #")[0].strip() for line in block.text.replace("\\\n", " ").splitlines())
    return [line for line in lines if line]
