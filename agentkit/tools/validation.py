"""Arguments against the schema of their tool, before anything runs; clear slips are corrected.

Models write ``"3"`` for an integer, ``"true"`` for a boolean or a list as JSON text. ``coerce``
converts such values where they break the schema, and ``canonical_arguments`` brings arguments into
one form, so that two calls that mean the same compare equal (the canonical calls of self-refine and
of the metrics). The rules are few and none of them loses anything: a string that is the JSON text
of a declared type becomes that value; an enum member is found when exactly one differs only in case
or white space (or is the same number as text); of several alternatives the first counts that fits
then. Anything else is returned unchanged.
"""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentkit.errors import DefinitionError
from agentkit.messages import JsonObject, ToolFailure, is_finite
from agentkit.tools import sources  # a door: it loads when a schema is read
from agentkit.tools.canonical import same_json
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.error_messages import problem, problems_of, value_text
from agentkit.tools.patterns import why_unusable
from agentkit.tools.schema import (
    attach_descriptions,
    for_same_value,
    references,
    resolve_local,
    schemas_in,
)
from agentkit.tools.schema_validator import (
    SchemaError,
    StepBudget,
    UncheckableError,
    fits,
    schema_errors,
)


def validate_arguments(definition: ToolDefinition, arguments: object) -> tuple[ToolFailure, ...]:
    """The problems of arguments; empty when they are valid.

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
        definition: The tool. Its schema is read when ``prepare`` or ``check`` is called.
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
        if fault := sources.schema_fault(schema) or sources.reference_fault(schema):
            raise self._broken(fault)
        for part in schemas_in(schema):
            patterns = [part["pattern"]] if "pattern" in part else []
            for pattern in [*patterns, *part.get("patternProperties", ())]:
                if why := why_unusable(pattern):
                    raise self._broken(f"its pattern {pattern[:80]!r} {why}")
        for reference in references(schema):
            if reference.startswith("#/") and resolve_local(schema, reference) is None:
                raise self._broken(f"the reference {reference!r} points nowhere")
        self._prepared = True

    def check(self, arguments: object) -> tuple[ToolFailure, ...]:
        """The problems of arguments, the most useful first; empty when they are valid.

        Args:
            arguments: Decoded JSON.

        Raises:
            DefinitionError: The schema is broken.
        """
        self.prepare()
        if not isinstance(arguments, Mapping):
            rule = f"the arguments must be an object, got {value_text(arguments)}"
            return (problem((), rule, "type"),)
        try:
            if fits(values := dict(arguments), self._definition.signature.parameters):
                return ()
            errors = schema_errors(values, self._described)
            return tuple(problems_of(errors, owner=f"an argument of {self._definition.name}"))
        except (UncheckableError, RecursionError) as error:
            why = "they are nested too deeply" if isinstance(error, RecursionError) else str(error)
        rule = f"the arguments cannot be checked: {why}"
        return (problem((), rule, ""),)

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

    def runnable(self, arguments: JsonObject) -> JsonObject | ToolFailure:
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
        coerced: JsonObject = coerce(arguments, offered)
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


# --- clear slips, corrected -----------------------------------------------------------------------

_MAX_STEPS = 40_000
_MAX_ROUNDS = 4
_MAX_EXACT_INTEGER = 2**53
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?")


def coerce(value: Any, schema: Any) -> Any:
    """The value in the form that ``schema`` asks for, where that is clear.

    Applying it twice gives what applying it once gives. The value given is never changed in
    place; when there is nothing to do it is returned itself.

    Args:
        value: Decoded JSON, usually the arguments of a call.
        schema: The JSON Schema (2020-12); ``$ref`` into the same document is followed.

    Returns:
        The coerced value. It need not satisfy the schema: what does not clearly coerce stays.

    Example:
        >>> properties = {"days": {"type": "integer"}, "unit": {"enum": ["celsius", "kelvin"]}}
        >>> schema = {"type": "object", "properties": properties}
        >>> coerce({"days": "3", "unit": " Kelvin"}, schema)
        {'days': 3, 'unit': 'kelvin'}
        >>> coerce({"days": "a few"}, schema)
        {'days': 'a few'}
    """
    coercion = _Coercion(root=schema if isinstance(schema, dict) else {})
    try:
        return coercion.repaired(value, schema)
    except (UncheckableError, RecursionError):  # a broken schema, too much work or depth
        return value


def canonical_arguments(arguments: JsonObject, parameters: JsonObject) -> dict[str, Any]:
    """Arguments in the one form that all calls of the same meaning share.

    Coerced, with the defaults of omitted arguments, keys sorted at each level, and whole numbers as
    integers. Python calls ``True`` and ``1`` equal; compare
    ``agentkit.tools.canonical.canonical_json`` of the result where that matters.

    Args:
        arguments: The arguments of a call.
        parameters: The tool's parameters schema.

    Raises:
        UncheckableError: They are nested too deeply, or a default takes too long to read.

    Example:
        >>> parameters = {"properties": {"n": {"type": "number"}, "unit": {"default": "km"}}}
        >>> canonical_arguments({"unit": "km", "n": "3.0"}, parameters)
        {'n': 3, 'unit': 'km'}
        >>> canonical_arguments({"n": 3}, parameters)
        {'n': 3, 'unit': 'km'}
    """
    try:
        found = coerce(dict(arguments), parameters)
        needed = parameters.get("required", ())
        for name, schema in (parameters.get("properties") or {}).items():
            if name not in found and name not in needed:
                stated = for_same_value(schema, parameters)
                for default in (one["default"] for one in stated if "default" in one):
                    found[name] = _Coercion(root=parameters).repaired(default, schema)
                    break
        return {key: _canonical(found[key]) for key in sorted(found)}
    except RecursionError as error:
        message = "the arguments, or defaults of their schema, are nested too deeply"
        raise UncheckableError(message) from error


def _canonical(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return {key: _canonical(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    return _whole(value)


def _whole(value: Any) -> Any:
    """A float without a fraction as the integer it is, where floats are exact."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= _MAX_EXACT_INTEGER:
        return int(value)
    return value


@dataclass(kw_only=True, slots=True)
class _Coercion:
    """One run over a value. Each step returns its input itself when it changes nothing."""

    root: JsonObject
    steps: StepBudget = field(default_factory=lambda: StepBudget(_MAX_STEPS))

    def repaired(self, value: Any, schema: Any) -> Any:
        """The value with what breaks the schema put right, as far as it is clear how.

        Under a contradictory schema, which one repair after the other breaks, nothing changes.
        """
        current = value
        for _ in range(_MAX_ROUNDS):
            if fits(current, schema, root=self.root, steps=self.steps):
                return current
            errors = schema_errors(current, schema, root=self.root, steps=self.steps, limit=None)
            changes = ((error.path, error.value, self._meant(error)) for error in errors)
            following = _replaced(current, changes)
            if following is current:
                return current
            current = following
        return value

    def _meant(self, error: SchemaError) -> Any:
        """The value meant by one that breaks a keyword; itself when that is not clear."""
        value = error.value
        if error.keyword == "type" and isinstance(value, str):
            return _read(value.strip(), error.limit, value)
        if error.keyword in {"enum", "const"}:
            return _member(value, error.limit if error.keyword == "enum" else [error.limit])
        for branch in error.limit if error.branches else ():
            candidate = self.repaired(value, branch)
            if candidate is not value and fits(candidate, branch, root=self.root, steps=self.steps):
                return candidate
        return value


_Path = tuple[str | int, ...]


def _replaced(whole: Any, changes: Iterable[tuple[_Path, Any, Any]]) -> Any:
    """A copy of a value with parts replaced; of changes inside each other the first counts."""
    holder: list[Any] = [whole]
    done: set[_Path] = set()
    for path, old, new in changes:
        part = whole
        for step in path:
            part = part[step]
        is_inside = any(path[:length] in done for length in range(len(path) + 1))
        if new is old or part is not old or is_inside:
            continue
        if not done:
            holder = copy.deepcopy(holder)
        done.add(path)
        inside: Any = holder
        at: str | int = 0
        for step in path:
            inside, at = inside[at], step
        inside[at] = new
    return holder[0]


# --- what a text or a member means ----------------------------------------------------------------

_NOTHING = object()  # None is a value here


def _read(text: str, declared: Any, otherwise: Any) -> Any:
    """A text as a value of one of the declared types, the first that it clearly is."""
    for name in declared if isinstance(declared, list) else (declared,):
        read = _READERS.get(name) if isinstance(name, str) else None
        found = _NOTHING if read is None else read(text)
        if found is not _NOTHING:
            return found
    return otherwise


def _read_number(text: str) -> Any:
    if _NUMBER.fullmatch(text) is None:
        return _NOTHING
    number = json.loads(text)
    return number if math.isfinite(number) else _NOTHING


def _read_integer(text: str) -> Any:
    whole = _whole(_read_number(text))
    return whole if isinstance(whole, int) else _NOTHING


def _read_container(text: str, opening: str) -> Any:
    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(found := dict(pairs)) != len(pairs):
            raise ValueError("a key is repeated, so reading the text would lose one of its values")
        return found

    try:
        read = json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
        return read if text.startswith(opening) and is_finite(read) else _NOTHING
    except (ValueError, RecursionError):
        return _NOTHING


_READERS: Mapping[str, Callable[[str], Any]] = {
    "array": lambda text: _read_container(text, "["),
    "boolean": lambda text: {"true": True, "false": False}.get(text.casefold(), _NOTHING),
    "integer": _read_integer,
    "null": lambda text: None if text.casefold() in {"null", "none"} else _NOTHING,
    "number": _read_number,
    "object": lambda text: _read_container(text, "{"),
}


def _member(value: Any, members: Any) -> Any:
    """The one of the members that the value means, if exactly one is."""
    if not isinstance(members, list) or isinstance(value, list | dict):
        return value
    folded = _folded(value)
    matches = [member for member in members if _folded(member) == folded]
    return matches[0] if len(matches) == 1 and not same_json(matches[0], value) else value


def _folded(value: Any) -> str | None:
    if isinstance(value, str):
        return " ".join(value.split()).casefold()
    return None if isinstance(value, list | dict) else json.dumps(_whole(value))
