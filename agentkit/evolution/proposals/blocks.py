"""Cutting an answer of a model into its ``<description>`` blocks (ToolDNA, figure 3)."""

from __future__ import annotations

from dataclasses import dataclass

from agentkit.evolution.validation.report import FailedCheck

OPENING, CLOSING = "<description>", "</description>"

MOST_CHARACTERS = 100_000
"""Longest answer that is read. A definition is a hundredth of it."""

MOST_BLOCKS = 50
"""Most blocks that are read of one answer."""

_SHOWN = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Cut:
    """An answer in parts.

    Attributes:
        blocks: What stands between the tags, in order.
        failed: What is wrong with the rest, each with the text that it is about.
    """

    blocks: tuple[str, ...] = ()
    failed: tuple[tuple[FailedCheck, str], ...] = ()


def cut(answer: str) -> Cut:
    """The blocks of an answer, in one pass over it.

    Text around blocks is prose and left out. A block that is opened and not closed before the next
    one opens, or before the answer ends, is half a block: nothing is read of it, as its end may be
    what is missing.

    Example:
        >>> cut("Better: <description>{}</description> or so").blocks
        ('{}',)
        >>> [check.code for check, _ in cut("<description>{").failed]
        ['half_block']
    """
    if not answer.strip():
        return _refused("empty_answer", "the answer is empty", answer)
    if len(answer) > MOST_CHARACTERS:
        why = f"the answer has {len(answer)} characters, read are up to {MOST_CHARACTERS}"
        return _refused("answer_too_long", why, answer)
    blocks: list[str] = []
    failed: list[tuple[FailedCheck, str]] = []
    for text, is_whole in _pieces(answer):
        if not is_whole:
            failed.append((_half(text), text))
        elif len(blocks) < MOST_BLOCKS:
            blocks.append(text)
        else:
            why = f"the answer has more than {MOST_BLOCKS} blocks"
            failed.append((unreadable("too_many_blocks", why, text), text))
            break
    if not blocks and not failed:
        return _refused("no_block", f"the answer has no {OPENING} block", answer)
    return Cut(blocks=tuple(blocks), failed=tuple(failed))


def unreadable(code: str, message: str, text: str, *, field: str = "") -> FailedCheck:
    """A reason why a text can not be read as a change of a tool."""
    return FailedCheck(
        code=code,
        layer="lexical",
        message=message,
        advice=f"answer with one {OPENING} block a tool, in the form that was asked for",
        field=field,
        excerpt=text.strip()[:_SHOWN],
    )


def _pieces(answer: str) -> list[tuple[str, bool]]:
    """What follows each opening tag, and whether it is closed; a closing tag alone is half, too."""
    pieces: list[tuple[str, bool]] = []
    first, *opened = answer.split(OPENING)
    if CLOSING in first:
        pieces.append((first, False))
    for part in opened:
        inside, closing, _ = part.partition(CLOSING)
        pieces.append((inside, bool(closing)))
    return pieces


def _half(text: str) -> FailedCheck:
    return unreadable("half_block", f"a block has not both {OPENING} and {CLOSING}", text)


def _refused(code: str, why: str, answer: str) -> Cut:
    return Cut(failed=((unreadable(code, why, answer), answer),))
