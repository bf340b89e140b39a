"""Reading a plan that a model wrote, however it wrote it.

Asked for is what ``agentkit.retrieval.planner`` shows; understood are also the field names of the
paper (``T_in``, ``T_out``), other usual field names, inputs in any shape, steps below a key such
as ``"steps"``, a single step, a list of sentences, and a numbered or bulleted list in prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.retrieval.asking import shortened, values_in

MAX_STEPS = 8
"""Maximum number of steps of a plan, unless the planner sets another."""

MAX_INTENT = 300
"""Longest intent, in characters."""

MAX_NAMES = 16
"""Most inputs, and most argument names, of one step."""

MAX_WORD = 80
"""Longest name and longest type word, in characters."""

_INTENTS = ("intent", "goal", "sub_goal", "subgoal", "task", "step", "action", "description",
            "what", "query", "purpose")  # fmt: skip
_INPUTS = ("inputs", "input", "t_in", "takes", "in", "given", "input_types", "input_type")
_OUTPUTS = ("output", "outputs", "t_out", "returns", "return", "result", "out", "gives",
            "output_type")  # fmt: skip
_NAMES = ("argument_names", "arguments", "args", "parameters", "params", "parameter_names",
          "argument", "names", "keywords")  # fmt: skip
_STEPS = ("sub_goals", "subgoals", "goals", "steps", "plan", "tasks", "sub_tasks", "subtasks")
_DEEPEST = 3
_NOT_A_TYPE = frozenset({"", "any", "anything", "unknown", "none", "null", "n/a", "unspecified"})
_ITEM = re.compile(r"^[ \t]*(?:\(?\d{1,3}[.):][ \t]|step[ \t]+\d{1,3}[.:)-][ \t]*|[-*\u2022+][ \t])"
                   r"[ \t]*(.+)$", re.IGNORECASE | re.MULTILINE)  # fmt: skip
_MARKS = re.compile(r"\*\*|__|`")
_NAME_OF_TYPE = re.compile(r"^\s*([\w.\-]{1,80})\s*:\s*(.+)$", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedInput:
    """A value that a step starts from.

    Attributes:
        name: What the model calls it; may be empty.
        type: Its type in the model's words; may be empty.
    """

    name: str = ""
    type: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedStep:
    """One step as the model wrote it, cut to size; its type words are not interpreted yet.

    Attributes:
        intent: What the step does.
        inputs: The values that it starts from.
        output: The type of its result in the model's words; may be empty.
        argument_names: Names that the arguments of its tool probably have.
    """

    intent: str
    inputs: tuple[PlannedInput, ...] = ()
    output: str = ""
    argument_names: tuple[str, ...] = ()

    @property
    def is_typed(self) -> bool:
        """Whether it says more than what the step does."""
        return bool(self.inputs or self.output or self.argument_names)


def parse_plan(text: str, *, limit: int = MAX_STEPS) -> tuple[PlannedStep, ...]:
    r"""The steps in a model's answer; none when it holds no plan. Never raises.

    Args:
        text: The answer.
        limit: Most steps to take; those after it are dropped.

    Example:
        >>> answer = '''Here is the plan:
        ... [{"intent": "find the weather", "inputs": {"city": "place"}, "output": "number"},]'''
        >>> parse_plan(answer)[0].inputs
        (PlannedInput(name='city', type='place'),)
        >>> [step.intent for step in parse_plan("1. Find a flight\n2. Book it")]
        ['Find a flight', 'Book it']
        >>> parse_plan("I am sorry, I cannot do that.")
        ()
    """
    found: list[PlannedStep] = []
    for value in values_in(text):
        found += _steps(value)
        if len(found) >= limit * 4:  # some may be the same
            break
    distinct: dict[str, PlannedStep] = {}
    for step in found or (PlannedStep(intent=intent) for intent in _listed(text)):
        distinct.setdefault(step.intent.casefold(), step)
    return tuple(distinct.values())[:limit]


def _steps(value: Any, *, depth: int = 0) -> Iterator[PlannedStep]:
    if isinstance(value, Mapping):
        fields = {_key(key): content for key, content in value.items()}
        inner = next((fields[key] for key in _STEPS if _is_nested(fields.get(key))), None)
        if inner is not None and depth < _DEEPEST:
            yield from _steps(inner, depth=depth + 1)
        else:
            yield from _step(fields)
    elif isinstance(value, list) and depth < _DEEPEST:
        for item in value:
            if isinstance(item, str):
                yield from _sentence(item)
            else:
                yield from _steps(item, depth=depth + 1)


def _is_nested(value: Any) -> bool:
    return isinstance(value, list | Mapping)


def _step(fields: Mapping[str, Any]) -> Iterator[PlannedStep]:
    intent = next((fields[key] for key in _INTENTS if isinstance(fields.get(key), str)), "")
    intent = shortened(intent, MAX_INTENT)
    if not _has_content(intent):
        return
    inputs = _inputs(_first(fields, _INPUTS))
    label = _first(fields, _NAMES)
    names = [one.name or one.type for one in _inputs(label)]
    yield PlannedStep(
        intent=intent,
        inputs=inputs,
        output=_type_word(_first(fields, _OUTPUTS)),
        argument_names=_distinct((*names, *(one.name for one in inputs)))[:MAX_NAMES],
    )


def _inputs(value: Any) -> tuple[PlannedInput, ...]:
    """Inputs from an object, a list of objects or words, or one text such as ``(int, float)``."""
    found: Iterable[PlannedInput]
    if isinstance(value, Mapping):
        found = (_input(name, content) for name, content in value.items())
    elif isinstance(value, str):
        found = (_input_in_words(word) for word in _split(value.strip().strip("()")))
    elif isinstance(value, Sequence):
        found = (_input_of_list(item) for item in value)
    else:
        found = ()
    return tuple(one for one in found if one.name or one.type)[:MAX_NAMES]


def _input(name: Any, content: Any) -> PlannedInput:
    return PlannedInput(name=_name(name), type=_type_word(content))


def _input_of_list(item: Any) -> PlannedInput:
    if isinstance(item, Mapping):
        fields = {_key(key): content for key, content in item.items()}
        if "name" in fields or "type" in fields:
            return _input(fields.get("name", ""), fields.get("type", ""))
        return next((_input(name, content) for name, content in item.items()), PlannedInput())
    return _input_in_words(item) if isinstance(item, str) else PlannedInput()


def _input_in_words(word: str) -> PlannedInput:
    named = _NAME_OF_TYPE.match(word)
    return _input(named[1], named[2]) if named else PlannedInput(type=_type_word(word))


def _split(text: str) -> list[str]:
    """The parts between the commas that stand in no bracket: ``list[int, int], str``."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "[({<") - (character in "])}>")
        if character == "," and depth <= 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def _type_word(value: Any) -> str:
    """A type in the model's words; an object or a list gives its own type or its only part."""
    if isinstance(value, Mapping):
        fields = {_key(key): content for key, content in value.items()}
        inner = fields.get("type") or next(iter(fields.values()), "")
        return _type_word(inner) if isinstance(inner, str) else ""
    if isinstance(value, list):
        return _type_word(value[0]) if len(value) == 1 else ""
    if not isinstance(value, str):
        return ""
    word = shortened(value, MAX_WORD)
    return "" if word.casefold() in _NOT_A_TYPE else word


def _name(value: Any) -> str:
    return shortened(value, MAX_WORD) if isinstance(value, str) else ""


def _listed(text: str) -> Iterator[str]:
    for match in _ITEM.finditer(text):
        yield from (step.intent for step in _sentence(match[1]))


def _sentence(text: str) -> Iterator[PlannedStep]:
    intent = shortened(_MARKS.sub("", text), MAX_INTENT)
    if _has_content(intent):
        yield PlannedStep(intent=intent)


def _has_content(text: str) -> bool:
    return any(character.isalpha() for character in text)


def _first(fields: Mapping[str, Any], keys: Iterable[str]) -> Any:
    return next((fields[key] for key in keys if fields.get(key)), None)


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))


def _key(key: object) -> str:
    return re.sub(r"[\s\-]+", "_", str(key).strip().casefold())[:MAX_WORD]
