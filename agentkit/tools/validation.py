"""Arguments against the schema of their tool, before anything runs, and what a model clearly meant.

What ``agentkit.tools.schema_validator`` finds is put into plain sentences. Models write ``"3"`` for
an integer, ``"true"`` for a boolean or a list as JSON text: ``coerce`` converts such values, and
``canonical_arguments`` brings arguments into one form, so that two calls that mean the same compare
equal (the canonical calls of self-refine and of the metrics). The rules are few and none of them
loses anything: a value that is already of a declared type stays; a string that is the JSON text of
a declared type becomes that value; an enum member is found when exactly one differs only in case
or white space (or is the same number as text); the first branch of ``anyOf`` that fits is taken.
Anything else is returned unchanged.
"""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from agentkit.errors import DefinitionError
from agentkit.messages import JsonObject
from agentkit.tools import sources  # a door: it loads when a schema is read
from agentkit.tools.canonical import same_json
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.error_messages import ArgumentProblem, problems_of, value_text
from agentkit.tools.schema import (
    MAX_DEPTH,
    attach_descriptions,
    check_bounds,
    references,
    resolve_local,
)
from agentkit.tools.schema_validator import (
    StepBudget,
    UncheckableError,
    fits,
    is_of_type,
    schema_errors,
)


def validate_arguments(
    definition: ToolDefinition, arguments: object
) -> tuple[ArgumentProblem, ...]:
    """What is wrong with arguments; empty when nothing is.

    For many calls of one tool keep an ``ArgumentValidator``.

    Args:
        definition: The tool.
        arguments: Decoded JSON.

    Raises:
        DefinitionError: The tool's schema is broken.

    Example:
        >>> definition = ToolDefinition.from_schema("wait", "", {
        ...     "properties": {"days": {"type": "integer"}}, "required": ["days"]})
        >>> [problem.rule for problem in validate_arguments(definition, {"days": "3"})]
        ["`days` must be an integer, got the string '3'"]
    """
    return ArgumentValidator(definition).check(arguments)


class ArgumentValidator:
    """Checks the arguments of one tool. Build one for each tool and keep it.

    Args:
        definition: The tool. Its schema is looked at when ``prepare`` or ``check`` is called.
    """

    __slots__ = ("_definition", "_prepared")

    def __init__(self, definition: ToolDefinition) -> None:
        self._definition = definition
        self._prepared = False

    @property
    def definition(self) -> ToolDefinition:
        """The tool whose arguments are checked."""
        return self._definition

    def prepare(self) -> None:
        """Find out now, rather than at the first call, whether the schema is usable.

        Raises:
            DefinitionError: The schema is broken, or refers to a part that it does not have.
        """
        if self._prepared:
            return
        schema = self._definition.signature.parameters
        try:
            check_bounds(schema, max_depth=MAX_DEPTH)
            changes = sources.normalise_parameters(schema).changes
        except DefinitionError as error:
            raise self._broken(str(error)) from error
        for change in changes:
            if change.is_fault or change.rule.startswith(sources.PATTERN_DROPPED):
                raise self._broken(f"at {change.pointer[1:]}: {change.rule}")
        for reference in references(schema):
            if reference.startswith("#/") and resolve_local(schema, reference) is None:
                raise self._broken(f"the reference {reference!r} points nowhere")
        self._prepared = True

    def check(self, arguments: object) -> tuple[ArgumentProblem, ...]:
        """What is wrong with arguments, the most useful problem first; empty when nothing is.

        Args:
            arguments: Decoded JSON.

        Raises:
            DefinitionError: The schema is broken.
        """
        self.prepare()
        if not isinstance(arguments, Mapping):
            rule = f"the arguments must be an object, got {value_text(arguments)}"
            return (ArgumentProblem(path=(), rule=rule, keyword="type"),)
        try:
            if fits(given := dict(arguments), self._definition.signature.parameters):
                return ()
            errors = schema_errors(given, self._described)
            return tuple(problems_of(errors, owner=f"an argument of {self._definition.name}"))
        except (UncheckableError, RecursionError) as error:
            why = "they are nested too deeply" if isinstance(error, RecursionError) else str(error)
        rule = f"the arguments can not be checked: {why}"
        return (ArgumentProblem(path=(), rule=rule, keyword=""),)

    def is_plainly_valid(self, arguments: JsonObject) -> bool:
        """Whether arguments can be run as they are, when that is quick to say.

        A valid call nearly always is. Anything else is for ``runnable``, which can take a second
        where a schema is hostile: code that runs in an event loop calls it in a thread.

        Args:
            arguments: The arguments of a call.

        Raises:
            DefinitionError: The schema is broken.
        """
        self.prepare()
        definition = self._definition
        return fits(arguments, definition.signature.parameters) is True and (
            not definition.specification.rules
            or fits(arguments, definition.parameters_schema) is True
        )

    def runnable(self, arguments: JsonObject) -> JsonObject | ArgumentProblem:
        """Arguments as they can be run, clear slips corrected; else the first rule that they break.

        ``"3"`` for an integer is clear enough: correcting it saves a round trip to the model. So is
        ``"eur"`` where a learned rule lists ``"EUR"``; whether the call keeps to the learned rules
        is another question (``agentkit.tools.rules.RuleChecker``).

        Args:
            arguments: The arguments of a call.

        Raises:
            DefinitionError: The schema is broken.
        """
        problems = self.check(arguments)
        if problems:
            coerced: JsonObject = coerce(arguments, self._definition.signature.parameters)
            if coerced is arguments or self.check(coerced):
                return problems[0]
            arguments = coerced
        return self._as_offered(arguments) if self._definition.specification.rules else arguments

    def _as_offered(self, arguments: JsonObject) -> JsonObject:
        """The same slips corrected where only learned rules say what is meant."""
        offered = self._definition.parameters_schema
        if fits(arguments, offered):
            return arguments
        coerced: JsonObject = coerce(arguments, offered, fill="none")
        return arguments if coerced is arguments or self.check(coerced) else coerced

    @property
    def _described(self) -> JsonObject:
        """The contract with the words on it, which problems quote."""
        signature, words = self._definition.signature, self._definition.description
        return attach_descriptions(signature.parameters, words.parameters)

    def _broken(self, why: str) -> DefinitionError:
        name = self._definition.name
        return DefinitionError(
            f"the parameters schema of tool {name!r} is broken, {why}; correct it, or import it "
            "with agentkit.tools.definition_from_json, which repairs known dialects",
            tool_name=name,
        )


# --- coercion -------------------------------------------------------------------------------------

_MAX_DEPTH = 64
_MAX_STEPS = 20_000
_NAMES_A_STEP = 8
_STEPS_A_REFERENCE = 3
_MAX_ROUNDS = 4
_MAPPINGS = (dict, Mapping)  # nearly all are dicts, which is quick to see
_MAX_EXACT_INTEGER = 2**53
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?")

Fill = Literal["all", "fitting", "none"]
"""Which defaults are filled in: all, those that satisfy their own schema, or none."""


def coerce(value: Any, schema: Any, *, fill: Fill = "fitting") -> Any:
    """The value in the form that ``schema`` asks for, where that is clear.

    Applying it twice gives what applying it once gives. The value given is never changed in
    place; when there is nothing to do it is returned itself.

    Args:
        value: Decoded JSON, usually the arguments of a call.
        schema: The JSON Schema (2020-12); ``$ref`` into the same document is followed.
        fill: Which defaults of absent, optional properties to fill in. ``fitting`` leaves out a
            default that breaks its own schema, such as null for a string.

    Returns:
        The coerced value. It need not satisfy the schema: what does not clearly coerce stays.

    Example:
        >>> schema = {
        ...     "type": "object",
        ...     "properties": {
        ...         "days": {"type": "integer"},
        ...         "unit": {"enum": ["celsius", "kelvin"], "default": "celsius"},
        ...     },
        ... }
        >>> coerce({"days": "3", "unit": " Kelvin"}, schema)
        {'days': 3, 'unit': 'kelvin'}
        >>> coerce({"days": "a few"}, schema)
        {'days': 'a few', 'unit': 'celsius'}
    """
    root = schema if isinstance(schema, Mapping) else {}
    try:
        return _settled(value, schema, _Coercion(root=root, fill=fill))
    except _TooMuchWorkError:
        return value


def canonical_arguments(arguments: JsonObject, parameters: JsonObject) -> dict[str, Any]:
    """Arguments in the one form that all calls of the same meaning share.

    Coerced, with every default filled in, keys sorted at each level, and whole numbers as
    integers. Python calls ``True`` and ``1`` equal; compare
    ``agentkit.tools.canonical.canonical_json`` of the result where that matters.

    Args:
        arguments: The arguments of a call.
        parameters: The tool's parameters schema.

    Raises:
        UncheckableError: They are nested too deeply.

    Example:
        >>> parameters = {"properties": {"n": {"type": "number"}, "unit": {"default": "km"}}}
        >>> canonical_arguments({"unit": "km", "n": "3.0"}, parameters)
        {'n': 3, 'unit': 'km'}
        >>> canonical_arguments({"n": 3}, parameters)
        {'n': 3, 'unit': 'km'}
    """
    try:
        coerced = coerce(dict(arguments), parameters, fill="all")
        return {key: _canonical(coerced[key]) for key in sorted(coerced)}
    except RecursionError as error:
        message = "the arguments, or defaults of their schema, are nested too deeply"
        raise UncheckableError(message) from error


def _canonical(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, _MAPPINGS):
        return {key: _canonical(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    return _whole(value)


def _whole(value: Any) -> Any:
    """A float without a fraction as the integer it is, where floats are exact."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= _MAX_EXACT_INTEGER:
        return int(value)
    return value


class _TooMuchWorkError(Exception):
    """The references or defaults of a schema multiply each other; this would not end soon."""


def _settled(value: Any, schema: Any, coercion: _Coercion) -> Any:
    """Coerce until nothing changes; if a contradictory schema never settles, change nothing."""
    current = value
    for _ in range(_MAX_ROUNDS):
        following = coercion.apply(current, schema, _TOP)
        if following is current:
            return current
        current = following
    return value


class _Position(NamedTuple):
    """Where in the schema we are: how deep, and through which references we came.

    ``followed`` holds the references followed since we last went deeper into the value; meeting
    one of them again would lead round in a circle.
    """

    depth: int = 0
    references: frozenset[str] = frozenset()
    recursive: bool = False
    followed: frozenset[str] = frozenset()

    def beside(self) -> _Position:
        """One schema deeper, at the same value."""
        return _Position(self.depth + 1, self.references, self.recursive, self.followed)

    def below(self) -> _Position:
        """One step deeper into the value."""
        return _Position(self.depth + 1, self.references, self.recursive)


_TOP = _Position()


@dataclass(kw_only=True, slots=True)
class _Coercion:
    """One run over a value. Each step returns its input itself when it changes nothing."""

    root: JsonObject
    fill: Fill
    steps: StepBudget = field(default_factory=lambda: StepBudget(_MAX_STEPS))

    def apply(self, value: Any, schema: Any, place: _Position) -> Any:
        if not isinstance(schema, _MAPPINGS) or place.depth > _MAX_DEPTH:
            return value
        self.steps.left -= 1 + (len(schema) + len(schema.get("enum") or ())) // _NAMES_A_STEP
        if self.steps.left < 0:
            raise _TooMuchWorkError
        if "$ref" in schema:
            value = self._referenced(value, schema, place)
        value = _typed(value, schema)
        if "enum" in schema or "const" in schema:
            value = _member(value, schema)
        if isinstance(value, _MAPPINGS):
            self.steps.left -= len(value) // _NAMES_A_STEP
            value = self._object(value, schema, place)
        elif isinstance(value, list | tuple):
            self.steps.left -= len(value) // _NAMES_A_STEP
            value = self._array(value, schema, place)
        return self._combined(value, schema, place)

    def _fits(self, value: Any, schema: Any) -> bool:
        return fits(value, schema, root=self.root, steps=self.steps) is True

    def _combined(self, value: Any, schema: JsonObject, place: _Position) -> Any:
        """Under the keywords that combine schemas."""
        if isinstance(branches := schema.get("allOf"), list):
            for branch in branches:
                value = self.apply(value, branch, place.beside())
        for keyword in ("anyOf", "oneOf"):
            if isinstance(branches := schema.get(keyword), list):
                value = self._alternative(value, branches, place)
        return value

    def _referenced(self, value: Any, schema: JsonObject, place: _Position) -> Any:
        reference = schema.get("$ref")
        target = resolve_local(self.root, reference) if isinstance(reference, str) else None
        if not isinstance(reference, str) or target is None or reference in place.followed:
            return value
        self.steps.left -= _STEPS_A_REFERENCE
        recursive = place.recursive or reference in place.references
        references, followed = place.references | {reference}, place.followed | {reference}
        return self.apply(
            value, target, _Position(place.depth + 1, references, recursive, followed)
        )

    def _alternative(self, value: Any, branches: list[Any], place: _Position) -> Any:
        for branch in branches:
            if self._fits(value, branch):
                return self.apply(value, branch, place.beside())
        for branch in branches:
            candidate = self.apply(value, branch, place.beside())
            if candidate is not value and self._fits(candidate, branch):
                return candidate
        return value

    def _object(self, value: JsonObject, schema: JsonObject, place: _Position) -> JsonObject:
        properties = schema.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        others = None if "patternProperties" in schema else schema.get("additionalProperties")
        changed: dict[str, Any] = {}
        below = place.below()
        for name, item in value.items():
            coerced = self.apply(item, properties.get(name, others), below)
            if coerced is not item:
                changed[name] = coerced
        if self.fill != "none" and not place.recursive:
            changed |= self._defaults(value, properties, schema.get("required"), place)
        return {**value, **changed} if changed else value

    def _defaults(
        self, value: JsonObject, properties: JsonObject, required: Any, place: _Position
    ) -> dict[str, Any]:
        needed = required if isinstance(required, list) else ()
        found: dict[str, Any] = {}
        for name, part in properties.items():
            if name in value or name in needed or not isinstance(part, Mapping):
                continue
            declared = self._with_default(part)
            if declared is None or part.get("$ref") in place.references:  # round a recursive schema
                continue
            default = self.apply(copy.deepcopy(declared["default"]), part, place.below())
            if self.fill == "all" or self._fits(default, part):
                found[name] = default
        return found

    def _with_default(self, part: JsonObject) -> JsonObject | None:
        """The schema that states the default: the property's own, or the one it refers to."""
        if "default" in part:
            return part
        reference = part.get("$ref")
        target = resolve_local(self.root, reference) if isinstance(reference, str) else None
        return target if isinstance(target, Mapping) and "default" in target else None

    def _array(self, value: Any, schema: JsonObject, place: _Position) -> Any:
        prefix = schema.get("prefixItems")
        prefix = prefix if isinstance(prefix, list) else []
        rest = schema.get("items")
        below = place.below()
        coerced = [
            self.apply(item, prefix[at] if at < len(prefix) else rest, below)
            for at, item in enumerate(value)
        ]
        changed = any(new is not old for new, old in zip(coerced, value, strict=True))
        return coerced if changed else value


def _typed(value: Any, schema: JsonObject) -> Any:
    """The value as one of the declared types, the first that it clearly is."""
    declared = schema.get("type")
    names = declared if isinstance(declared, list) else (declared,)
    for name in names:
        if is_of_type(value, name):
            return _whole(value) if "integer" in names and "number" not in names else value
    if not isinstance(value, str):
        return value
    for name in names:
        read = _READERS.get(name) if isinstance(name, str) else None
        found = _NOTHING if read is None else read(value.strip())
        if found is not _NOTHING:
            return found
    return value


_NOTHING = object()  # None is a value here


def _read_number(text: str) -> Any:
    if _NUMBER.fullmatch(text) is None:
        return _NOTHING
    number = json.loads(text)
    return number if math.isfinite(number) else _NOTHING


def _read_integer(text: str) -> Any:
    number = _read_number(text)
    whole = _whole(number)
    return whole if isinstance(whole, int) else _NOTHING


def _read_boolean(text: str) -> Any:
    return {"true": True, "false": False}.get(text.casefold(), _NOTHING)


def _read_container(text: str) -> Any:
    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(found := dict(pairs)) != len(pairs):
            raise ValueError("a key is repeated, so reading the text would lose one of its values")
        return found

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError):
        return _NOTHING


_READERS: Mapping[str, Callable[[str], Any]] = {
    "array": lambda text: _read_container(text) if text.startswith("[") else _NOTHING,
    "boolean": _read_boolean,
    "integer": _read_integer,
    "null": lambda text: None if text.casefold() in {"null", "none"} else _NOTHING,
    "number": _read_number,
    "object": lambda text: _read_container(text) if text.startswith("{") else _NOTHING,
}


def _member(value: Any, schema: JsonObject) -> Any:
    """The member of ``enum`` or ``const`` that the value means, if exactly one does."""
    members = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if not isinstance(members, list) or isinstance(value, list | tuple | Mapping):
        return value
    if any(same_json(value, member) for member in members):
        return value
    folded = _folded(value)
    matches = [member for member in members if _folded(member) == folded]
    return matches[0] if len(matches) == 1 else value


def _folded(value: Any) -> str | None:
    if isinstance(value, str):
        return " ".join(value.split()).casefold()
    if isinstance(value, list | tuple | Mapping):
        return None
    return json.dumps(_whole(value))
