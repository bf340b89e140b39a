"""Changed definitions, as a proposer would hand them in: for trying checks of validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agentkit.errors import UsageError
from agentkit.evolution.validation.report import ProposedChange
from agentkit.library.library import Library
from agentkit.testing.sample_tools import sample_library
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules.records import Rule
from agentkit.tools.schema import copied


def rewrite(
    tool_name: str,
    edits: Mapping[str, Any] | None = None,
    *,
    rules: tuple[Rule, ...] | None = None,
    library: Library | None = None,
    sources: tuple[str, ...] = (),
) -> ProposedChange:
    """A change of one tool.

    Args:
        tool_name: The tool.
        edits: New values by place: ``summary`` (in its place), ``sentence`` (added to the summary),
            ``rule`` (added to the usage rules), ``parameters.<path>``, or a JSON Pointer (RFC 6901)
            into ``ToolDefinition.to_json`` such as ``/signature/effects/writes``; ``-`` at its end
            appends to a list, and None takes the value away.
        rules: Learned rules of the candidate.
        library: Where the tool is; the sample library by default.
        sources: Texts that must not be copied.

    Raises:
        UsageError: A place is none of these.

    Example:
        >>> change = rewrite("weather_now", {"rule": "Cities in English."})
        >>> change.candidate.description.usage_rules, change.base.description.usage_rules
        (('Cities in English.',), ())
    """
    library = library or sample_library()
    base = library[tool_name].definition
    record = copied(base.to_json())
    for place, value in (edits or {}).items():
        _set(record, place, value)
    candidate = ToolDefinition.from_json(record) if edits else base
    if rules is not None:
        candidate = replace(candidate, specification=replace(candidate.specification, rules=rules))
    return ProposedChange(base=base, candidate=candidate, library=library, sources=sources)


def _set(record: dict[str, Any], place: str, value: Any) -> None:
    words = record.setdefault("description", {})
    if place == "summary":
        words["summary"] = value
    elif place == "sentence":
        words["summary"] = f"{words.get('summary', '')} {value}".strip()
    elif place == "rule":
        words["usage_rules"] = [*words.get("usage_rules", ()), value]
    elif place.startswith("parameters."):
        words.setdefault("parameters", {})[place.removeprefix("parameters.")] = value
    elif place.startswith("/"):
        _point(record, place, value)
    else:
        raise UsageError(
            f"there is no place {place!r} in a definition; name summary, sentence, rule, "
            "parameters.<path> or a JSON Pointer that starts with /"
        )


def _point(record: Any, pointer: str, value: Any) -> None:
    *path, last = (part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
    at = record
    for part in path:
        at = (
            at[int(part)]
            if isinstance(at, list)
            else at.setdefault(part, [] if last == "-" else {})
        )
    if isinstance(at, list):
        if last == "-":
            at.append(value)
        elif value is None:
            del at[int(last)]
        else:
            at[int(last)] = value
    elif value is None:
        at.pop(last, None)
    else:
        at[last] = value
