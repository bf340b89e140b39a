"""``told_change``: what an accepted proposal did to a tool's text, in one line."""

from __future__ import annotations

from itertools import takewhile

from agentkit.evaluation.results.texts import shown
from agentkit.tools.definition import ToolDefinition
from agentkit_bench.language.measures import texts_of

_MOST = 70  # characters of what is quoted, in all
_MOST_OF_FIELD = 24
_WORDS_BEFORE = 2  # that did not change, so that one sees where the change is


def told_change(before: ToolDefinition, after: ToolDefinition) -> str:
    """What the first text that differs was and is, shortened to a line of about 100 characters.

    Of a text of several lines, such as the usage rules, only those are told that came or went.

    Args:
        before: The definition that a proposal was made for.
        after: What the library has now.

    Returns:
        The change; empty where no text differs.

    Example:
        >>> before = ToolDefinition.from_schema("lamp", "Switch a lamp.", {"type": "object"})
        >>> after = ToolDefinition.from_schema("lamp", "Switch a lamp on.", {"type": "object"})
        >>> told_change(before, after)
        'summary was "Switch a lamp.", is now "Switch a lamp on."'
    """
    old, new = texts_of(before), texts_of(after)
    fields = [one for one in {**old, **new} if old.get(one) != new.get(one)]
    if not fields:
        return ""
    more = f", and {len(fields) - 1} more" if len(fields) > 1 else ""
    return _told(fields[0], old.get(fields[0], ""), new.get(fields[0], "")) + more


def _told(field: str, old: str, new: str) -> str:
    gone, come = _without(old, new), _without(new, old)
    if not gone and not come:  # the same lines in another order
        gone, come = old, new
    name = shown(field, _MOST_OF_FIELD)
    if not gone or not come:
        return f'{name}, {"new" if come else "gone"}: "{shown(gone + come, _MOST)}"'
    words = zip(gone.split(), come.split(), strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], words))
    start = max(0, same - _WORDS_BEFORE)
    was, now = (_from(text, start) for text in (gone, come))
    return f'{name} was "{was}", is now "{now}"'


def _without(text: str, other: str) -> str:
    """The lines of a text that another one does not have."""
    known = set(other.splitlines())
    return "\n".join(line for line in text.splitlines() if line not in known)


def _from(text: str, start: int) -> str:
    """A text from one of its words on."""
    words = " ".join(text.split()[start:])
    return shown(f"\u2026 {words}" if start else words, _MOST // 2)
