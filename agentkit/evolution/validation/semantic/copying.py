"""Text that was taken over from what users said and tools returned."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentkit.evolution.validation.folding import folded
from agentkit.evolution.validation.reasons import reason
from agentkit.evolution.validation.report import FailedCheck, ProposedChange

_WORDS = 8
_UNSPACED = 20
_WORD = re.compile(r"\w+")
_DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]{4}")
_VALUE = re.compile(r"(?<![\w-])(?=[\w-]*\d[\w-]*\d[\w-]*\d)[\w][\w-]{5,40}(?![\w-])")
_DAY = re.compile(r"\d{4}-?\d\d-?\d\d|\d\d-\d\d-\d{4}")


def not_copied(change: ProposedChange) -> Iterator[FailedCheck]:
    """Eight words in a row, or twenty characters of Chinese or Japanese, out of the sources.

    Also a value with three digits and six characters or more, such as an order number: it belongs
    to one conversation. Dates pass, they show a format. What the base says is not copied, and
    examples are left out: they *are* calls that were made.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> said = ("Please send the car to my mother in the old mill, order B-20417",)
        >>> own = {"rule": "Give the maker by name."}
        >>> list(not_copied(rewrite("cars_search", own, sources=said)))
        []
        >>> told = {"rule": "Send the car to my mother in the old mill."}
        >>> [found.code for found in not_copied(rewrite("cars_search", told, sources=said))]
        ['copied_text']
    """
    if not change.sources:
        return
    sources = [_squeezed(source) for source in change.sources]
    known = _squeezed(change.known)
    for edit in change.edits:
        if edit.kind == "example":
            continue
        for stretch in (*_stretches(folded(edit.after)), *_values(edit.after)):
            if stretch not in known and any(stretch in source for source in sources):
                yield reason(
                    "copied_text",
                    "semantic",
                    edit,
                    stretch.strip(),
                    message="it repeats what a user said or a tool returned",
                    advice="say what holds for every call, in words of your own",
                )
                break


def _squeezed(text: str) -> str:
    return f" {' '.join(_WORD.findall(folded(text)))} "


def _stretches(text: str) -> Iterator[str]:
    """The stretches of a text that would not be shared by chance."""
    words = _WORD.findall(text)
    joined = f" {' '.join(words)} "
    if _DENSE.search(text):
        for start in range(max(len(joined) - _UNSPACED + 1, 0)):
            yield joined[start : start + _UNSPACED]
        return
    for start in range(len(words) - _WORDS + 1):
        yield f" {' '.join(words[start : start + _WORDS])} "


def _values(text: str) -> Iterator[str]:
    for match in _VALUE.finditer(text):
        if not _DAY.search(match.group()):
            yield _squeezed(match.group())
