"""From a jsonschema error to the sentence that a model reads.

Each keyword has one sentence: what must be, and what was got. The deepest relevant error of an
``anyOf`` is worded, not the fact that no branch fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from agentkit.messages import JsonObject
from agentkit.tools.formats import FORMAT_EXAMPLES
from agentkit.tools.patterns import pattern_holds
from agentkit.tools.problem import ArgumentProblem, path_text, value_text

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

_MORE_PROPERTIES = frozenset({"additionalProperties", "unevaluatedProperties"})
_TYPE_WORDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}
_MAX_LISTED = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class BrokenRule:
    """One rule of a schema that a value breaks; what we read of jsonschema's error.

    Attributes:
        keyword: The keyword that states the rule; empty for the schema ``false``.
        limit: The value of that keyword.
        value: The value that breaks it.
        schema: The schema that holds the keyword.
        path: From the arguments down to the value.
        depth: Steps of ``path`` below the branch that the rule stands in.
        message: jsonschema's own words.
        branches: For ``anyOf`` and ``oneOf``, what breaks in each branch.
    """

    keyword: str
    limit: Any
    value: Any
    schema: Any
    path: tuple[str | int, ...]
    depth: int
    message: str
    branches: tuple[tuple[BrokenRule, ...], ...] = ()

    @classmethod
    def of(cls, error: ValidationError) -> BrokenRule:
        """What an error says, with the errors below it."""
        branches: dict[object, list[BrokenRule]] = {}
        for below in error.context or ():
            branches.setdefault(below.relative_schema_path[0], []).append(cls.of(below))
        return cls(
            keyword=error.validator if isinstance(error.validator, str) else "",
            limit=error.validator_value,
            value=error.instance,
            schema=error.schema,
            path=tuple(error.absolute_path),
            depth=len(error.relative_path),
            message=error.message,
            branches=tuple(map(tuple, branches.values())),
        )

    @property
    def is_of_other_type(self) -> bool:
        """Whether the value is not even of the type that its branch describes."""
        return self.keyword == "type" and not self.depth

    @property
    def has_wrong_constant(self) -> bool:
        """Whether a constant is wrong, which is how branches are usually told apart."""
        return self.keyword in {"const", "enum"}


def problems_of(broken: BrokenRule, *, tool_name: str) -> Iterator[ArgumentProblem]:
    """The problems that one broken rule amounts to; several when several names are wrong.

    Args:
        broken: A rule that the arguments break.
        tool_name: The tool, for sentences on unknown arguments.
    """
    found = most_relevant(broken)
    if found.keyword in _MORE_PROPERTIES:
        yield from _unknown(found, tool_name)
    elif found.keyword == "required":
        yield from _missing(found)
    else:
        yield _worded(found)


def most_relevant(broken: BrokenRule) -> BrokenRule:
    """The rule below ``anyOf`` or ``oneOf`` that says what to change.

    The branch meant is one of the value's own type, whose constants fit, and which breaks the
    fewest rules; in it the deepest rule counts. When no branch is of the value's type, the choice
    itself is kept, and worded as a choice of types.
    """
    while broken.branches:
        fitting = [
            branch
            for branch in broken.branches
            if not any(below.is_of_other_type for below in branch)
        ]
        if not fitting:
            return broken
        if choice := _wrong_choice(fitting):
            return choice
        meant = min(fitting, key=_distance)
        broken = max(meant, key=lambda below: (below.keyword in _MORE_PROPERTIES, below.depth))
    return broken


def _wrong_choice(branches: list[tuple[BrokenRule, ...]]) -> BrokenRule | None:
    """All the constants that could stand where every branch finds a wrong one."""
    wrong = [[below for below in branch if below.has_wrong_constant] for branch in branches]
    if len(wrong) < 2 or not all(wrong) or len({found[0].path for found in wrong}) > 1:
        return None
    members: list[Any] = []
    for below, *_ in wrong:
        members.extend(below.limit if below.keyword == "enum" else [below.limit])
    return replace(wrong[0][0], keyword="enum", limit=members, schema={"enum": members})


def _distance(branch: tuple[BrokenRule, ...]) -> tuple[int, int]:
    return sum(below.has_wrong_constant for below in branch), len(branch)


def _unknown(broken: BrokenRule, tool_name: str) -> Iterator[ArgumentProblem]:
    schema = broken.schema if isinstance(broken.schema, Mapping) else {}
    known = dict(schema.get("properties", {}))
    patterns = schema.get("patternProperties", {})
    free = [name for name in known if name not in broken.value]
    missing = [name for name in schema.get("required", ()) if name in free]
    extra = [n for n in broken.value if n not in known and not _matches_any(n, patterns)]
    pair = tuple(missing) if len(extra) == len(missing) == 1 else ()
    owner = (
        f"a field of `{path_text(broken.path)}`" if broken.path else f"an argument of {tool_name}"
    )
    for name in extra:
        nearest = close_to(name, free) or pair or close_to(name, known)
        path = (*broken.path, name)
        yield ArgumentProblem(
            path=path,
            rule=f"`{path_text(path)}` is not {owner}; {_instead(nearest, free, known)}",
            keyword=broken.keyword,
            schema_excerpt=known[nearest[0]] if nearest else None,
            nearest=nearest,
        )


def _matches_any(name: str, patterns: Iterable[str]) -> bool:
    return any(pattern_holds(pattern, name) for pattern in patterns)


def _instead(nearest: tuple[str, ...], free: list[str], known: Iterable[str]) -> str:
    if nearest:
        return f"did you mean `{nearest[0]}`?"
    names = free or list(known)
    if not names:
        return "it takes none"
    shown = ", ".join(f"`{name}`" for name in names[:_MAX_LISTED])
    more = " and more" if len(names) > _MAX_LISTED else ""
    return f"leave it out, or use {shown}{more}"


def _missing(broken: BrokenRule) -> Iterator[ArgumentProblem]:
    schema = broken.schema if isinstance(broken.schema, Mapping) else {}
    properties = schema.get("properties", {})
    for name in broken.limit:
        if name in broken.value:
            continue
        path = (*broken.path, name)
        excerpt = properties.get(name)
        yield ArgumentProblem(
            path=path,
            rule=f"missing required argument `{path_text(path)}`",
            keyword="required",
            schema_excerpt=excerpt if isinstance(excerpt, Mapping) else None,
        )


def _worded(broken: BrokenRule) -> ArgumentProblem:
    subject = f"`{path_text(broken.path)}`" if broken.path else "the arguments"
    sentence = _SENTENCES.get(broken.keyword, _in_other_words)(broken)
    return ArgumentProblem(
        path=broken.path,
        rule=f"{subject} {sentence}",
        keyword=broken.keyword,
        schema_excerpt=_excerpt(broken.schema),
        nearest=_nearest_values(broken),
    )


def _excerpt(schema: Any) -> JsonObject | None:
    """The schema that was broken, without the parts below it."""
    if not isinstance(schema, Mapping):
        return None
    if "properties" not in schema and "$defs" not in schema:
        return schema
    kept = {key: part for key, part in schema.items() if key not in {"$defs", "properties"}}
    return {**kept, "properties": {name: {} for name in schema.get("properties", {})}}


def _nearest_values(broken: BrokenRule) -> tuple[str, ...]:
    members = broken.limit if broken.keyword == "enum" else ()
    if not isinstance(broken.value, str):
        return ()
    return close_to(broken.value, [member for member in members if isinstance(member, str)])


def close_to(name: str, known: Iterable[str], *, limit: int = 3) -> tuple[str, ...]:
    """Texts among ``known`` that look like ``name`` or contain it, ignoring case, best first."""
    import difflib

    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(candidate.casefold(), candidate)
    wanted = name[:100].casefold()
    close = difflib.get_close_matches(wanted, folded, n=limit, cutoff=0.6)
    inside = [
        text
        for text in folded
        if len(wanted) > 2
        and len(text) > 2
        and (wanted in text or text in wanted)
        and text not in close
    ]
    return tuple(folded[text] for text in [*close, *inside][:limit])


def _got(broken: BrokenRule) -> str:
    return f"got {value_text(broken.value)}"


def _type(broken: BrokenRule) -> str:
    kinds = broken.limit
    names = [kinds] if isinstance(kinds, str) else list(kinds)
    return f"must be {_either(_TYPE_WORDS.get(name, name) for name in names)}, {_got(broken)}"


def _either(words: Iterable[str]) -> str:
    unique = list(dict.fromkeys(words))
    return unique[0] if len(unique) == 1 else f"{', '.join(unique[:-1])} or {unique[-1]}"


def _branches(broken: BrokenRule) -> str:
    """No branch is of the value's type, or several of ``oneOf`` fit."""
    if not broken.branches:
        return f"must fit exactly one of the alternatives, not several, {_got(broken)}"
    kinds = [
        kind
        for branch in broken.branches
        for below in branch
        if below.is_of_other_type
        for kind in ([below.limit] if isinstance(below.limit, str) else below.limit)
    ]
    if not kinds:
        return f"must fit one of the alternatives, {_got(broken)}"
    return f"must be {_either(_TYPE_WORDS.get(kind, kind) for kind in kinds)}, {_got(broken)}"


def _enum(broken: BrokenRule) -> str:
    members = [
        repr(m) if isinstance(m, str) else value_text(m).removeprefix("the number ")
        for m in broken.limit
    ]
    shown = ", ".join(members[:_MAX_LISTED])
    more = f" and {len(members) - _MAX_LISTED} more" if len(members) > _MAX_LISTED else ""
    return f"must be one of {shown}{more}, {_got(broken)}"


def _const(broken: BrokenRule) -> str:
    return f"must be {value_text(broken.limit)}, {_got(broken)}"


def _bound(words: str) -> Callable[[BrokenRule], str]:
    return lambda broken: f"must be {words} {broken.limit}, {_got(broken)}"


def _size(words: str, unit: str) -> Callable[[BrokenRule], str]:
    def sentence(broken: BrokenRule) -> str:
        limit = broken.limit
        plural = unit if limit == 1 else f"{unit}s"
        return f"must have {words} {limit} {plural}, got {len(broken.value)}"

    return sentence


def _pattern(broken: BrokenRule) -> str:
    return f"must match the pattern {broken.limit}, {_got(broken)}"


def _format(broken: BrokenRule) -> str:
    name = str(broken.limit)
    return f"must be a {name} such as {FORMAT_EXAMPLES.get(name, name)}, {_got(broken)}"


def _in_other_words(broken: BrokenRule) -> str:
    """What jsonschema says, for keywords that are rare in tools."""
    message = broken.message
    return f"must fit the schema: {message if len(message) <= 200 else f'{message[:200]}…'}"


_SENTENCES: Mapping[str, Callable[[BrokenRule], str]] = MappingProxyType(
    {
        # jsonschema does not say where the schema ``false`` stands, so the value has to do.
        "": lambda broken: f"hold {value_text(broken.value)}, which is not allowed",
        "anyOf": _branches,
        "const": _const,
        "enum": _enum,
        "exclusiveMaximum": _bound("less than"),
        "exclusiveMinimum": _bound("more than"),
        "format": _format,
        "maxItems": _size("at most", "item"),
        "maxLength": _size("at most", "character"),
        "maxProperties": _size("at most", "field"),
        "maximum": _bound("at most"),
        "minItems": _size("at least", "item"),
        "minLength": _size("at least", "character"),
        "minProperties": _size("at least", "field"),
        "minimum": _bound("at least"),
        "multipleOf": _bound("a multiple of"),
        "not": lambda broken: f"must not be like this, {_got(broken)}",
        "oneOf": _branches,
        "pattern": _pattern,
        "type": _type,
        "uniqueItems": lambda _: "must not hold an item twice",
    }
)
