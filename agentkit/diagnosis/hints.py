"""How to repair what a turn did wrong: what to change in the call, and what in the tool's text.

A hint is chosen by the class of the failure. It names only what the model could see: tools that
were called, their parameters, the schema. Nothing of a verifier's finding enters it but its kind,
so that a hint can be shown in training (SEAL, section 3.3: "without exposing the reference tool
sequence, hidden parameters, or final answer").
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from agentkit.diagnosis.findings import Finding
from agentkit.diagnosis.labels import breaks_learned_rule
from agentkit.episodes import EvidenceKind, FailureLabel
from agentkit.library.library import Library
from agentkit.messages import FailureKind, ToolCall

_LONGEST_NAME = 100  # a name that a model made up can be of any length
_MOST_NAMED = 5

_BY_FAILURE: Mapping[FailureKind, str] = {
    "malformed_arguments": (
        "Write the arguments of {tool} as one JSON object and nothing else: names and texts in "
        "double quotes, every bracket closed."
    ),
    "unknown_tool": (
        "Call only tools that are offered, by their exact names; {tool} is none. If it is asked "
        "for often, a tool's name or summary should hold the word."
    ),
    "contract_violated": (
        "Choose arguments of {tool} that keep its precondition; its description should say the "
        "condition in words."
    ),
    "retry_requested": (
        "Change the call of {tool} as its answer says; its description should say beforehand what "
        "the answer said afterwards."
    ),
    "tool_error": (
        "Check {argument} of {tool} against what the tool knows; its description should say which "
        "values it takes, and which tool finds them."
    ),
}

_BY_RULE = (
    "Keep {argument} of {tool} to what its description says of it; the refusal names the rule and "
    "what is allowed."
)
"""For a call that a learned rule of the tool refused: the rule is in the description already."""

_BROKEN_OFF = (
    "The call of {tool} ends in the middle: the answer ran into its limit. Leave out what is "
    "optional and do not repeat anything; if the arguments are that long, allow longer answers."
)

_BY_EVIDENCE: Mapping[EvidenceKind, str] = {
    "missing_argument": (
        "Give {argument} in the call of {tool}; its description should say that it is needed, and "
        "where its value comes from."
    ),
    "unexpected_argument": (
        "Leave {argument} out of the call of {tool}; its description should say when it is given."
    ),
    "wrong_type": (
        "Give {argument} of {tool} in the type that the schema declares; an example in its "
        "description shows the form."
    ),
    "wrong_value": (
        "Take {argument} of {tool} from what the user said or an earlier result gave, in the form "
        "that the schema asks for; its description should state unit, format and allowed values."
    ),
}

_BY_LABEL: Mapping[FailureLabel, str] = {
    "invalid_tool_call": (
        "Make the call through the interface for calls, in its format, instead of writing it into "
        "the answer."
    ),
    "argument_mismatch": "Check {argument} of {tool} against the schema and the request.",
    "state_mismatch": (
        "The calls ran but did not bring about what was asked: check their order, their arguments "
        "and whether a step is left out; descriptions should say what a call changes."
    ),
    "recovery_failure": (
        "After the error of {tool}, read the rule that it states, change the call accordingly or "
        "look the value up with another tool; do not repeat the call and do not give up."
    ),
    "spurious_tool_call": (
        "Do not call {tool} here; its description should say when it does not apply."
    ),
    "missing_tool_call": (
        "Before answering, check whether an offered tool does a part of the request that is still "
        "open, and call it; descriptions should name the requests that they serve."
    ),
    "response_mismatch": (
        "Build the answer on the results of the calls, answer all that was asked, and keep to the "
        "form that was asked for."
    ),
}


def repair_hint(findings: Sequence[Finding], library: Library) -> str:
    """How to repair what was found, in words that hold nothing of the gold.

    Args:
        findings: The findings of a turn, the dominant one first. The hint is about that one, and
            about what else is wrong with the same call in the same way.
        library: The tools that were offered.
    """
    first = findings[0]
    template = _template(first)
    alike = [
        finding
        for finding in findings
        if finding.call is first.call and _template(finding) == template
    ]
    names = dict.fromkeys(finding.parameter for finding in alike)
    tool = "the tool" if first.call is None else first.call.name[:_LONGEST_NAME]
    return template.format(tool=tool, argument=_arguments(first.call, names, library))


def _template(finding: Finding) -> str:
    if finding.call is not None and _breaks_off(finding.call.malformed):
        return _BROKEN_OFF
    if finding.label in {"invalid_tool_call", "argument_mismatch"} and finding.call is not None:
        if finding.failure is not None and breaks_learned_rule(finding.failure):
            return _BY_RULE
        if finding.failure is not None and finding.failure.kind in _BY_FAILURE:
            return _BY_FAILURE[finding.failure.kind]
        if finding.evidence.kind in _BY_EVIDENCE:
            return _BY_EVIDENCE[finding.evidence.kind]
        if finding.label == "invalid_tool_call":
            return _BY_FAILURE["malformed_arguments"]
    return _BY_LABEL[finding.label]


def _arguments(call: ToolCall | None, names: Iterable[str], library: Library) -> str:
    """The arguments in words: the names of those that the call gives or the schema declares."""
    if call is None:
        return "the arguments"
    tool = library.get(call.name)
    declared = {} if tool is None else tool.definition.signature.properties
    seen = [
        f"`{name[:_LONGEST_NAME]}`" for name in names if name in call.arguments or name in declared
    ]
    return ", ".join(seen[:_MOST_NAMED]) or "the arguments"


def _breaks_off(malformed: str | None) -> bool:
    """Whether a text would be JSON if it went on."""
    if malformed is None:
        return False
    text = malformed.strip()
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return bool(text) and (error.pos >= len(text) or error.msg.startswith("Unterminated"))
    except (RecursionError, ValueError):  # too deep, or a number of thousands of digits
        return False
    return False
