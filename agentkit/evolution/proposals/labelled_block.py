"""ToolDNA's own form of a block (figure 3): labelled lines.

    Tool Name: calculate_loan
    Tool Description: What a loan costs a month.
    Required Parameters:
    periods(int): Loan term. Must be 36, 48 or 60.
    Usage Rules:
    - Ask for the down payment first.
    Usage Examples: calculate_loan(periods=36)

Usage rules are ours, the template has none. Examples are read over: they are text here, and a
worked call of a definition is data, so those of the tool stay.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agentkit.evolution.proposals.blocks import unreadable
from agentkit.evolution.validation.report import FailedCheck

_LABELS = {
    "tool name": "tool",
    "tool description": "summary",
    "required parameters": "parameters",
    "optional parameters": "parameters",
    "parameters": "parameters",
    "usage rules": "usage_rules",
    "usage examples": "examples",
    "usage example": "examples",
    "examples": "examples",
}
_MAY_COME_TWICE = frozenset({"parameters", "examples"})
_DECORATION = "#*_` \t-"
_BULLET = re.compile(r"(?:[-*•]|\d{1,3}[.)])\s{1,8}")
_PARAMETER = re.compile(
    r"""[`*]{0,3}(?P<name>[^\s():\uff1a\uff08\uff09`*]{1,200})[`*]{0,3}\s{0,8}
        (?:[(\uff08](?P<kind>[^()\uff08\uff09]{0,100})[)\uff09])?\s{0,8}
        [`*]{0,3}[:\uff1a]\s{0,8}(?P<text>.*)""",
    re.VERBOSE,
)
"""Name, kind in brackets, colon, text; Chinese texts have full-width brackets and colons."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledBlock:
    """What the lines of a block say.

    Attributes:
        tool: Name of the tool.
        summary: What it does; None when the block does not say.
        parameters: Name, kind and text of each parameter, in order.
        usage_rules: The sentences on use; None when the block does not say.
        failed: What is wrong with the block.
    """

    tool: str = ""
    summary: str | None = None
    parameters: tuple[tuple[str, str, str], ...] = ()
    usage_rules: tuple[str, ...] | None = None
    failed: tuple[FailedCheck, ...] = ()


def read_labelled(body: str) -> LabelledBlock:
    r"""The labelled lines of a block.

    Example:
        >>> read_labelled("Tool Name: loan\nRequired Parameters:\nperiods(int): Term.").parameters
        (('periods', 'int', 'Term.'),)
    """
    sections: dict[str, list[str]] = {}
    twice: list[str] = []
    for section, lines in _sections(body):
        if section in sections and section not in _MAY_COME_TWICE:
            twice.append(section)
        sections.setdefault(section, []).extend(lines)
    parameters = tuple(_parameters(sections.get("parameters", ())))
    names = [name for name, _, _ in parameters]
    twice += [f"parameters.{name[:60]}" for name in _repeated(names)]
    tool = "".join(sections.get("tool", ())[:1]).strip("`* ")
    failed = [_duplicate(field, body) for field in twice]
    if not tool:
        why = "the block is neither a JSON object nor does it name its tool in a line 'Tool Name:'"
        failed.append(unreadable("no_tool_name", why, body))
    rules = sections.get("usage_rules")
    return LabelledBlock(
        tool=tool,
        summary="\n".join(sections["summary"]) if "summary" in sections else None,
        parameters=parameters,
        usage_rules=None if rules is None else tuple(_without_bullet(rule) for rule in rules),
        failed=tuple(failed),
    )


def _sections(body: str) -> Iterator[tuple[str, list[str]]]:
    """Each label with the lines behind it; lines before the first label are left out."""
    label, lines = "", list[str]()
    for line in body.splitlines():
        found, rest = _label(line)
        if found:
            if label:
                yield label, lines
            label, lines = found, []
        text = rest if found else line.strip()
        if text:
            lines.append(text)
    if label:
        yield label, lines


def _label(line: str) -> tuple[str, str]:
    head, colon, rest = line.partition(":")
    section = _LABELS.get(head.strip(_DECORATION).casefold(), "") if colon else ""
    return section, rest.strip().removeprefix("**").strip() if section else ""


def _parameters(lines: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """A parameter a line; lines that begin none go on with the one before."""
    name, kind, texts = "", "", list[str]()
    for line in lines:
        said = _PARAMETER.fullmatch(_without_bullet(line))
        if said is None:
            texts.append(line)
            continue
        if name:
            yield name, kind, " ".join(texts)
        name, kind, texts = said["name"], (said["kind"] or "").strip(), [said["text"].strip()]
    if name:
        yield name, kind, " ".join(texts).strip()


def _without_bullet(line: str) -> str:
    bullet = _BULLET.match(line)
    return line if bullet is None else line[bullet.end() :]


def _repeated(names: Sequence[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _duplicate(field: str, body: str) -> FailedCheck:
    return unreadable("duplicate_field", f"{field} is given twice", body, field=field)
