"""Recovery-oriented words for failed calls.

SEAL (section 3.3) turns errors into feedback that names the rule and the way out. Every failure is
worded in the same order: what happened, what is allowed, what to do next. A stack trace never
reaches the model.

The way out goes by the class of the failure, which is that of its label in
``agentkit.diagnosis.labels``: a call that could not be read is written again in its format, wrong
arguments are changed, and what is not the call's fault is not tried over and over (SEAL, appendix
D.3). All that is said is made of the call, its schema and the tool's own words, so there is
nothing in it that could tell the right answer.
"""

from __future__ import annotations

import json

from agentkit.diagnosis.labels import breaks_learned_rule, label_of_failure
from agentkit.messages import FailureKind, ToolFailure

_OPENINGS: dict[FailureKind, str] = {
    "malformed_arguments": "The arguments of {name} are not a JSON object.",
    "unknown_tool": "There is no tool named {name}.",
    "invalid_arguments": "The call to {name} was not run, because its arguments break its schema.",
    "contract_violated": "The contract of {name} is broken.",
    "retry_requested": "{name} asks for another try.",
    "tool_failed": "{name} failed.",
    "tool_error": "{name} stopped with an error.",
    "timeout": "{name} did not finish in time.",
    "unserialisable_result": "{name} ran, but its result cannot be shown.",
    "denied": "The call to {name} was not approved, so it was not run.",
    "limit_exceeded": "The call to {name} was not run: a limit of this run is reached.",
}

_WAYS_OUT: dict[FailureKind, str] = {
    "malformed_arguments": (
        "Send the call again; its arguments are one JSON object with nothing around it, each name "
        "once, names and texts in double quotes, all brackets closed."
    ),
    "unknown_tool": "Use only the tools that are offered.",
    "invalid_arguments": "Correct the arguments and call it again.",
    "contract_violated": "Change the arguments so that the condition holds, and call it again.",
    "retry_requested": "Change the call accordingly and try again.",
    "tool_failed": "Do not repeat the call; continue without it or tell the user.",
    "tool_error": "Check the arguments; if they are right, tell the user what failed.",
    "timeout": "Ask for less at once, or tell the user that it takes too long.",
    "unserialisable_result": "Do not repeat the call; tell the user.",
    "denied": "Do not repeat the call; ask the user how to continue.",
    "limit_exceeded": "Answer with what is known so far.",
}

_BLAMED_WAY_OUT = (
    "Change the argument that the error is about and call it again; if the arguments are right, "
    "tell the user what failed."
)
"""Advice for an exception that complains about the arguments; see ``blamed_argument``."""

_RULE_OPENING = "The call to {name} was not run, because it breaks a rule of the tool."
_RULE_WAYS_OUT = {
    **dict.fromkeys(
        ("one_of", "between", "form", "requires", "condition"),
        "Change the arguments as the rule says, and call it again.",
    ),
    "call_before": "Make the other call first and wait for its result, then call this again.",
}
"""Advice by kind of learned rule (``agentkit.tools.rules``), the cause of the failure."""

_FINAL_WAY_OUT = "Do not repeat this call; continue without it or tell the user."


def describe_failure(name: str, failure: ToolFailure) -> str:
    """The text a model reads in place of a result.

    Args:
        name: The tool's name as the model used it.
        failure: The typed failure.

    Returns:
        Sentences in a fixed order: what happened and the rule, the part of the schema that states
        it, names or values that come near, what to do next.

    Example:
        >>> print(describe_failure("get_wether", ToolFailure(
        ...     kind="unknown_tool", rule="It is not offered here.", nearest=("get_weather",))))
        There is no tool named get_wether. It is not offered here.
        Nearest: get_weather.
        Use only the tools that are offered.
    """
    lines = [f"{_opening(failure).format(name=name)} {_sentence(failure.rule)}".strip()]
    if failure.schema_excerpt is not None:
        where = failure.path or "arguments"
        excerpt = json.dumps(failure.schema_excerpt, ensure_ascii=False, separators=(", ", ": "))
        lines.append(f"Schema of {where}: {_shortened(excerpt)}")
    if failure.nearest:
        lines.append(f"Nearest: {', '.join(failure.nearest)}.")
    lines.append(_way_out(failure))
    return "\n".join(lines)


def tells_failure(name: str, text: str) -> bool:
    """Whether a text is what ``describe_failure`` writes about a call of a tool.

    Example:
        >>> failure = ToolFailure(kind="timeout", rule="It was stopped after 30 seconds.")
        >>> tells_failure("search", describe_failure("search", failure))
        True
        >>> tells_failure("search", "3 results")
        False
    """
    openings = (*_OPENINGS.values(), _RULE_OPENING)
    return text.startswith(tuple(opening.format(name=name) for opening in openings))


def _opening(failure: ToolFailure) -> str:
    return _RULE_OPENING if breaks_learned_rule(failure) else _OPENINGS[failure.kind]


def _way_out(failure: ToolFailure) -> str:
    if not failure.retryable:
        return _FINAL_WAY_OUT
    if breaks_learned_rule(failure):
        return _RULE_WAYS_OUT[failure.cause or ""]
    is_blamed = failure.kind == "tool_error" and label_of_failure(failure) == "argument_mismatch"
    return _BLAMED_WAY_OUT if is_blamed else _WAYS_OUT[failure.kind]


def _sentence(text: str) -> str:
    text = text.strip()
    return text if not text or text[-1] in ".!?" else f"{text}."


def _shortened(text: str, limit: int = 600) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… (shortened)"
