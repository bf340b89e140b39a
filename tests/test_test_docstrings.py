"""Every test states in a sentence what it expects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_TEST = re.compile(
    r"^ *(?:async )?def (?P<name>test_\w+)\((?P<signature>.*?)\)(?: -> [^\n]*?)?:(?: *\.\.\.)?\n"
    r"(?:\s+(?P<quotes>\"\"\"|\'\'\')(?P<text>.*?)(?P=quotes))?",
    re.DOTALL | re.MULTILINE,
)


def untold_tests(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of each test whose docstring is missing or is not a sentence."""
    for match in _TEST.finditer(source):
        if not is_sentence(match["text"]):
            yield source.count("\n", 0, match.start("name")) + 1, match["name"]


def is_sentence(text: str | None) -> bool:
    """Whether a text has some words, starts upright and ends in a full stop."""
    if not text:
        return False
    first = text.split("\n\n")[0].strip()
    words = first.split()
    starts_well = first[0].isupper() or not words[0].isalpha()  # such as a name from the code
    return starts_well and len(words) > 2 and first.endswith((".", "?", "!"))


def test_every_test_has_a_sentence(project_root):
    """A reader learns what holds by reading the docstrings of the tests alone."""
    plugins = project_root.glob("*/*/tests")
    folders = [project_root / "tests", project_root / "training" / "tests", *plugins]
    untold = [
        f"{path.relative_to(project_root)}:{line} {name}"
        for folder in folders
        for path in sorted(folder.rglob("*.py"))
        if path != Path(__file__)  # whose samples are texts
        for line, name in untold_tests(path.read_text(encoding="utf-8"))
    ]
    assert untold == []


def test_the_check_can_fail():
    """A test without a docstring, with a label or with a loose phrase is reported."""
    sample = """
def test_nothing(): ...
def test_label():
    '''Retries.'''
def test_phrase():
    '''checks that it works somehow'''
class TestStore:
    async def test_sentence(self):
        '''A second close does nothing.'''
"""
    assert [name for _, name in untold_tests(sample)] == [
        "test_nothing",
        "test_label",
        "test_phrase",
    ]
