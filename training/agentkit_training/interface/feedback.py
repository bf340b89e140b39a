"""Feedback on failed calls in training, and the bare errors of the papers' environment.

C_rec of SEAL (Eq. 9, appendix D.3). The runtime words every failure so that a model can recover:
the rule that was broken, its place in the schema, names that come near, the way out
(``agentkit.diagnosis.wording``); SEAL has such words in training only. So there are three kinds:

* **worded**, what the runtime says, in training and at evaluation alike: our default;
* **plain**, the error alone, as in the environments that the paper compares with. It is no part of
  the learning interface: whoever wants the paper's baseline uses it at evaluation as well;
* **recovery**, training only, behind either: how the tool is called, or which tools there are, and
  how to go on after an error that a tool returns as its result (BFCL's simulators do), about which
  the runtime says nothing.

All of it is made of the call's failure and of definitions that the policy has been shown, never of
gold. Only what the model reads is changed: results, verdicts and diagnoses are the runtime's.

SEAL has hints for calls that could not be parsed, too. Here such a text ends the run as an answer,
so there is no turn in which a hint could be read; the failure is labelled ``invalid_tool_call``,
and its guideline tells the format.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from agentkit.diagnosis.findings import reported_error
from agentkit.diagnosis.wording import tells_failure
from agentkit.errors import UsageError
from agentkit.messages import JsonObject, Message, ToolMessage
from agentkit.models.base import ModelRequest, ModelResponse
from agentkit.tools.definition import ToolDefinition
from agentkit_training.rollout.collecting import RolloutModel

MOST_NAMES = 12
"""Tools that are listed after a call of a tool that is not there."""

_ADDED = ("Schema of ", "Nearest: ")
_FINAL = ("Do not repeat ", "Answer with what is known")
_UNKNOWN = "Offered are {names}. If none of them does what is asked, answer in words."
_AGAIN = "It is called as {form}. Change what the error is about and keep the rest."
_REPORTED = (
    "It is called as {form}. The error is about an argument, or about the state that the call met: "
    "check both, with a tool that reads the state if there is one, and then call again, otherwise "
    "than before."
)


class FeedbackModel:
    """Passes requests on, with the results of failed calls in other words.

    The same conversation is always worded the same, so that what a policy wrote earlier goes on
    from the tokens that it read. With ``recovery`` it refuses to answer at temperature 0, which is
    evaluation: the learning interface ends with training.

    Args:
        model: Answers.
        recovery: Whether to help with recovering.
        plain: Whether to cut the runtime's words down to the bare error first.
    """

    def __init__(self, model: RolloutModel, *, recovery: bool, plain: bool = False) -> None:
        self._model = model
        self._recovery = recovery
        self._plain = plain

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """The model's answer.

        Raises:
            UsageError: The request is one of an evaluation, and there is help in it.
        """
        if self._recovery and request.settings.temperature == 0:
            raise UsageError(
                "the learning interface helps a policy to recover, and temperature 0 evaluates; "
                "evaluate the policy's own model, without the interface"
            )
        known = {tool.name: tool for tool in request.tools}
        said = tuple(self._said(message, known) for message in request.messages)
        return await self._model.complete(replace(request, messages=said))

    def expect(self, runs: int) -> None:
        """Say how many runs are under way."""
        self._model.expect(runs)

    def forget(self) -> None:
        """Drop what the model keeps of earlier answers."""
        self._model.forget()

    def _said(self, message: Message, known: Mapping[str, ToolDefinition]) -> Message:
        if not isinstance(message, ToolMessage):
            return message
        text = plain_error(message) if self._plain else message.text
        hint = recovery_hint(message, known) if self._recovery else ""
        return message if text == message.text and not hint else _with(message, text, hint)


def plain_error(message: ToolMessage) -> str:
    """What a result says, without the runtime's help where it is a failure.

    Schema, near names and the way out are left off; what happened and the rule stay.

    Example:
        >>> from agentkit.diagnosis.wording import describe_failure
        >>> from agentkit.messages import ToolFailure
        >>> failure = ToolFailure(kind="tool_error", rule="KeyError: 'Oslo'", nearest=("Olso",))
        >>> text = describe_failure("weather", failure)
        >>> plain_error(ToolMessage(call_id="1", name="weather", text=text))
        "Error: weather stopped with an error. KeyError: 'Oslo'."
    """
    if not tells_failure(message.name, message.text):
        return message.text
    lines = message.text.split("\n")[:-1]  # the way out is the last line
    while len(lines) > 1 and lines[-1].startswith(_ADDED):
        del lines[-1]
    return "\n".join(["Error: " + lines[0], *lines[1:]])


def recovery_hint(message: ToolMessage, known: Mapping[str, ToolDefinition]) -> str:
    """How to go on after a failed call; empty for a result, and where it must not be repeated.

    Args:
        message: The result as the runtime worded it.
        known: The tools that are offered, by name.
    """
    is_failure = tells_failure(message.name, message.text)
    tool = known.get(message.name)
    if tool is None:
        return _UNKNOWN.format(names=_names(known)) if is_failure and known else ""
    if is_failure:
        is_final = message.text.rpartition("\n")[2].startswith(_FINAL)
        return "" if is_final else _AGAIN.format(form=call_form(tool))
    is_reported = _reported(message.text)
    return _REPORTED.format(form=call_form(tool)) if is_reported else ""


def call_form(definition: ToolDefinition) -> str:
    """How a tool is called, from its schema: names, types, and what may be left out.

    Example:
        >>> schema = {"properties": {"city": {"type": "string"}, "days": {}}, "required": ["city"]}
        >>> call_form(ToolDefinition.from_schema("weather", "Forecast.", schema))
        'weather(city: string, days?)'
    """
    properties: Mapping[str, object] = definition.parameters_schema.get("properties", {})
    required = definition.signature.required
    parts = (
        f"{name}{'' if name in required else '?'}{_type(part)}" for name, part in properties.items()
    )
    return f"{definition.name}({', '.join(parts)})"


def _type(part: object) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else None
    return f": {kind}" if isinstance(kind, str) else ""


def _names(known: Iterable[str]) -> str:
    names: Sequence[str] = list(known)
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _reported(text: str) -> bool:
    """Whether a result is an error that the tool returned."""
    if not text.lstrip().startswith("{"):
        return False
    try:
        value: JsonObject = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return reported_error(value) is not None


def _with(message: ToolMessage, text: str, hint: str) -> ToolMessage:
    return replace(message, text="\n".join(filter(None, [text, hint])))
