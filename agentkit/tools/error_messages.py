"""Turn a schema error into the sentence that a model reads.

Each keyword has one sentence: what must be, and what was got. The deepest relevant error of an
``anyOf`` is worded, not the fact that no branch fits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from agentkit.messages import JsonObject, ToolFailure
from agentkit.tools.patterns import FORMAT_EXAMPLES
from agentkit.tools.schema_validator import SchemaError

Path: TypeAlias = tuple[str | int, ...]
Names: TypeAlias = tuple[str, ...]

_SHOWN_CHARACTERS = 60
_MAX_LISTED = 12
_TYPE_WORDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}


def problems_of(
    errors: Iterable[SchemaError], *, owner: str, noun: str = "argument", whole: str = "arguments"
) -> list[ToolFailure]:
    """What a call fails for whose arguments have errors, each once, the most useful first.

    The ``cause`` of each is the keyword of JSON Schema that states the rule; ``path`` leads to
    where a missing name is missing, or an unknown one stands.

    Args:
        errors: What a value breaks.
        owner: What a name at the top belongs to, such as ``an argument of get_weather``.
        noun: What such a name is called.
        whole: What the value is called.
    """
    found: dict[tuple[str, str], ToolFailure] = {}
    compared = iter(range(_MOST_GUESSES))
    for error in errors:
        for problem in _problems(_most_relevant(error), owner, noun, whole, compared):
            found.setdefault((problem.path, problem.rule), problem)
    return sorted(found.values(), key=_usefulness)


def problem(
    path: Path, rule: str, cause: str, excerpt: JsonObject | None = None, nearest: Names = ()
) -> ToolFailure:
    """One rule that arguments break, in words that a small model understands.

    Args:
        path: Keys and indexes down to the value.
        rule: One plain sentence, such as ``missing required argument `city```.
        cause: The keyword of JSON Schema that states the rule.
        excerpt: The part of the schema to read, if one part says it all.
        nearest: Names or values that are allowed and look like what was given, best first.
    """
    return ToolFailure(
        kind="invalid_arguments",
        rule=rule,
        path=path_text(path),
        schema_excerpt=excerpt,
        nearest=nearest,
        cause=cause,
    )


def _problems(
    error: SchemaError, owner: str, noun: str, whole: str, compared: Iterator[int]
) -> Iterator[ToolFailure]:
    if error.keyword == "additionalProperties" and error.names:
        yield from _unknown(error, owner, compared)
    elif error.keyword == "required":
        yield from _missing(error, noun)
    else:
        yield _worded(error, whole, compared)


def _usefulness(problem: ToolFailure) -> int:
    """Unknown names that look like a known one explain what is missing, so they come first."""
    if problem.cause == "additionalProperties" and problem.nearest:
        return 0
    return 1 if problem.cause == "required" else 2


# --- which error of several alternatives says what to change --------------------------------------


def _most_relevant(error: SchemaError) -> SchemaError:
    """The error below ``anyOf`` or ``oneOf`` that says what to change.

    The branch meant is one of the value's own type, whose constants fit, and which breaks the
    fewest rules; in it the deepest error counts. When no branch is of the value's type, the choice
    itself is kept, and worded as a choice of types.
    """
    while error.branches:
        depth = len(error.path)
        fitting = [
            branch
            for branch in error.branches
            if not any(_is_of_type(one, depth) for one in branch)
        ]
        if not fitting:
            return error
        if choice := _wrong_choice(fitting):
            return choice
        meant = min(fitting, key=lambda branch: (sum(map(_is_of_constant, branch)), len(branch)))
        error = max(meant, key=lambda one: (one.keyword == "additionalProperties", len(one.path)))
    return error


def _is_of_type(error: SchemaError, depth: int) -> bool:
    """Whether the value is not even of the type that its branch describes."""
    return error.keyword == "type" and len(error.path) == depth


def _is_of_constant(error: SchemaError) -> bool:
    """Whether a constant is wrong, which is how branches usually differ."""
    return error.keyword in {"const", "enum"}


def _wrong_choice(branches: list[Sequence[SchemaError]]) -> SchemaError | None:
    """All the constants that could stand where every branch finds a wrong one."""
    wrong = [[below for below in branch if _is_of_constant(below)] for branch in branches]
    if len(wrong) < 2 or not all(wrong) or len({one[0].path for one in wrong}) > 1:
        return None
    members: list[Any] = []
    for first, *_ in wrong:
        members.extend(first.limit if first.keyword == "enum" else [first.limit])
    return replace(wrong[0][0], keyword="enum", limit=members, schema={"enum": members})


# --- names ----------------------------------------------------------------------------------------


def _unknown(error: SchemaError, owner: str, compared: Iterator[int]) -> Iterator[ToolFailure]:
    known: JsonObject = error.schema.get("properties", {})
    free = [name for name in known if name not in error.value]
    missing = [name for name in error.schema.get("required", ()) if name in free]
    pair = tuple(missing) if len(error.names) == len(missing) == 1 else ()
    owner = f"a field of `{path_text(error.path)}`" if error.path else owner
    for name in error.names[:_MOST_NAMES]:
        nearest = pair
        if next(compared, None) is not None:
            nearest = close_to(name, free) or pair or close_to(name, known)
        path = (*error.path, name)
        rule = f"`{path_text(path)}` is not {owner}; {_instead(nearest, free or [*known])}"
        excerpt = known[nearest[0]] if nearest else None
        yield problem(path, rule, error.keyword, excerpt, nearest)


def _instead(nearest: Sequence[str], names: Sequence[str]) -> str:
    if nearest:
        return f"did you mean `{_shortened(nearest[0])}`?"
    if not names:
        return "it takes none"
    shown = ", ".join(f"`{_shortened(name)}`" for name in names[:_MAX_LISTED])
    return f"leave it out, or use {shown}{' and more' if len(names) > _MAX_LISTED else ''}"


def _missing(error: SchemaError, noun: str) -> Iterator[ToolFailure]:
    for name in error.names[:_MOST_NAMES]:
        path = (*error.path, name)
        part = error.schema.get("properties", {}).get(name)
        rule = f"missing required {noun} `{path_text(path)}`"
        yield problem(path, rule, "required", part if isinstance(part, Mapping) else None)


# --- sentences ------------------------------------------------------------------------------------


def _worded(error: SchemaError, whole: str, compared: Iterator[int]) -> ToolFailure:
    keyword, limit, value = error.keyword, error.limit, error.value
    members = [member for member in limit if isinstance(member, str)] if keyword == "enum" else []
    is_compared = members and isinstance(value, str) and next(compared, None) is not None
    rule = f"{f'`{path_text(error.path)}`' if error.path else f'the {whole}'} {_sentence(error)}"
    nearest = close_to(value, members) if is_compared else ()
    return problem(error.path, rule, keyword, _excerpt(error.schema), nearest)


def _excerpt(schema: Any) -> JsonObject | None:
    """The schema that was broken, without the parts below it."""
    if not isinstance(schema, Mapping):
        return None
    if "properties" not in schema and "$defs" not in schema:
        return schema
    kept = {key: part for key, part in schema.items() if key not in {"$defs", "properties"}}
    return {**kept, "properties": {name: {} for name in schema.get("properties", {})}}


_SENTENCES: Mapping[str, str] = {
    "": "must be left out, {got}",
    "const": "must be {value}, {got}",
    "dependentRequired": "must hold {names} as well",
    "enum": "must be one of {members}, {got}",
    "exclusiveMaximum": "must be less than {limit}, {got}",
    "exclusiveMinimum": "must be more than {limit}, {got}",
    "format": "must be a {limit} such as {example}, {got}",
    "maxItems": "must have at most {limit} item{s}, got {size}",
    "maxLength": "must have at most {limit} character{s}, got {size}",
    "maxProperties": "must have at most {limit} field{s}, got {size}",
    "maximum": "must be at most {limit}, {got}",
    "minItems": "must have at least {limit} item{s}, got {size}",
    "minLength": "must have at least {limit} character{s}, got {size}",
    "minProperties": "must have at least {limit} field{s}, got {size}",
    "minimum": "must be at least {limit}, {got}",
    "multipleOf": "must be a multiple of {limit}, {got}",
    "not": "must not be like this, {got}",
    "oneOf": "must fit exactly one of the alternatives, not several, {got}",
    "pattern": "must match the pattern {limit}, {got}",
    "type": "must be {kinds}, {got}",
    "uniqueItems": "must not hold an item twice",
}


def _sentence(error: SchemaError) -> str:
    """The expected and the actual value."""
    template = _SENTENCES.get(error.keyword, "must fit the schema: {keyword} {value}")
    if error.branches:  # no alternative fits
        template = _SENTENCES["type"] if _kinds(error) else "must fit one alternative, {got}"
    parts = {name: of(error) for name, of in _PARTS.items() if f"{{{name}}}" in template}
    return template.format(**parts)


def _kinds(error: SchemaError) -> str:
    """The types that are allowed, those of all alternatives; empty when another rule is broken."""
    below = [one for branch in error.branches for one in branch]
    typed = [one for one in below if _is_of_type(one, len(error.path))] if below else [error]
    kinds = [kind for one in typed for kind in _listed(one.limit)]
    words = [_TYPE_WORDS.get(kind, kind) for kind in dict.fromkeys(kinds)]
    return " or ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def _listed(limit: Any) -> list[Any]:
    return limit if isinstance(limit, list) else [limit]


def _members(limit: Any) -> str:
    members = [plain_text(member) for member in _listed(limit)]
    more = f" and {len(members) - _MAX_LISTED} more" if len(members) > _MAX_LISTED else ""
    return f"{', '.join(members[:_MAX_LISTED])}{more}"


_PARTS: Mapping[str, Callable[[SchemaError], Any]] = {
    "example": lambda error: FORMAT_EXAMPLES.get(str(error.limit), error.limit),
    "got": lambda error: f"got {value_text(error.value)}",
    "keyword": lambda error: error.keyword,
    "kinds": _kinds,
    "limit": lambda error: error.limit,
    "members": lambda error: _members(error.limit),
    "names": lambda error: ", ".join(f"`{name}`" for name in error.names),
    "s": lambda error: "" if error.limit == 1 else "s",
    "size": lambda error: len(error.value),
    "value": lambda error: value_text(error.limit),
}
"""Values for the braces of a sentence."""


# --- names and values in sentences ----------------------------------------------------------------


_MOST_COMPARED = 50
"""Texts that are compared letter by letter, out of any number; each costs its length squared."""
_LONGEST_COMPARED = 64
_MOST_GUESSES = 5
"""Names and values of one call that are compared with the known ones."""
_MOST_NAMES = 20
"""Maximum number of unknown or missing names listed for one object."""


def close_to(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Up to three of the ``known`` texts that look like ``name`` or contain it, best first.

    Only texts of about the same length that start alike, share a word, or hold one another are
    compared, those of the nearest length first, so that ten thousand known names take milliseconds.
    """
    import difflib
    import heapq

    name_folded = name[:_LONGEST_COMPARED].casefold()
    folded: dict[str, str] = {}
    akin = _akin(name_folded, known)
    for candidate in heapq.nsmallest(_MOST_COMPARED, akin, lambda one: abs(len(one) - len(name))):
        folded.setdefault(candidate[:_LONGEST_COMPARED].casefold(), candidate)
    close = difflib.get_close_matches(name_folded, folded, n=3, cutoff=0.6)
    inside = [text for text in folded if _hold_one_another(text, name_folded) and text not in close]
    return tuple(folded[text] for text in [*close, *inside][:3])


def _akin(name_folded: str, known: Iterable[str]) -> Iterator[str]:
    first, words, slack = name_folded[:1], set(name_folded.split("_")), 4 + len(name_folded) // 4
    for other in known:
        folded = other[:_LONGEST_COMPARED].casefold()
        is_alike = folded[:1] == first or not words.isdisjoint(folded.split("_"))
        is_alike = is_alike and abs(len(folded) - len(name_folded)) <= slack
        if is_alike or _hold_one_another(folded, name_folded):
            yield other


def _hold_one_another(text: str, name_folded: str) -> bool:
    return len(text) > 2 and len(name_folded) > 2 and (name_folded in text or text in name_folded)


_LONGEST_STEP = 200
"""Characters of one key in a path; keys come from the caller."""


def path_text(path: Path) -> str:
    """A path as text.

    Example:
        >>> path_text(("items", 0, "sku"))
        'items[0].sku'
    """
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step[:_LONGEST_STEP]}" if text else step[:_LONGEST_STEP]
    return text


def value_text(value: Any) -> str:
    """A value for a sentence: its kind and, shortened, itself.

    Example:
        >>> value_text("3"), value_text(3), value_text(None), value_text([1, 2])
        ("the string '3'", 'the number 3', 'null', 'the list [1, 2]')
    """
    if value is None or isinstance(value, bool):
        return plain_text(value)
    kinds = ((str, "string"), (int | float, "number"), (list | tuple, "list"), (object, "object"))
    kind = next(word for types, word in kinds if isinstance(value, types))
    return f"the {kind} {plain_text(value)}"


def plain_text(value: Any) -> str:
    """A value by itself, as JSON or, a text, in quotes; shortened."""
    if isinstance(value, str):
        return repr(_shortened(value))
    try:
        return _shortened(json.dumps(value, ensure_ascii=False, default=str))
    except (
        ValueError,
        RecursionError,
    ):  # such as an integer of too many digits
        return "… (too large to show)"


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def plural(number: int, noun: str) -> str:
    """A number of things: ``3 tools``, ``1 tool``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
