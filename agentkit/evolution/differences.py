"""How two revisions of a tool differ: for models, and field by field for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from agentkit.composites.composite import program_of
from agentkit.composites.language import render
from agentkit.library.library import Library
from agentkit.tools.definition import Example, ToolDefinition

# --- What a model sees of a tool, and how two revisions differ there, for people to read ----------
# A model sees a name, a text and a parameters schema. Learned rules show in both: as a sentence and
# as a narrower schema. Everything else in a definition is for retrieval, validation and code.


DESCRIPTION = "description"
"""The keyword of a text: of the tool where the place is empty, else of a parameter."""

PARAMETER = "parameter"
"""The keyword that says whether there is such a parameter."""

_Flat: TypeAlias = dict[tuple[str, str], str]

_BOUNDS: Mapping[str, str] = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters long",
    "maxLength": "at most {} characters long",
    "minItems": "a list of {} or more",
    "maxItems": "a list of {} or fewer",
    "pattern": "a text that matches {}",
    "format": "in the format {}",
    "type": "of type {}",
    "const": "exactly {}",
}
"""Keywords of JSON Schema that say what a value must be, as the end of a sentence."""


def model_view(definition: ToolDefinition) -> dict[str, Any]:
    """What a model is given of a tool: its name, its text with the learned rules, its parameters.

    The schema is narrowed by the learned rules. In the words that providers use.
    """
    parameters = dict(definition.parameters_schema)
    return {"name": definition.name, "description": definition.text, "parameters": parameters}


@dataclass(frozen=True, kw_only=True, slots=True)
class ViewChange:
    """One thing that a model sees otherwise.

    Attributes:
        place: The parameter, such as ``periods`` or ``lines[].amount``; empty for the whole tool.
        keyword: What of it: ``description``, ``parameter``, ``required``, ``requires`` or a keyword
            of JSON Schema.
        before: The text, or the value as JSON; empty for what was not there.
        after: The same afterwards; empty for what is gone.
    """

    place: str
    keyword: str
    before: str
    after: str

    @property
    def is_text(self) -> bool:
        """Whether both sides are texts for a model rather than JSON."""
        return self.keyword == DESCRIPTION

    @property
    def sentence(self) -> str:
        """The change in plain words."""
        return _sentence(self)

    def to_json(self) -> dict[str, Any]:
        """The change as a JSON object; a side that is absent is null."""

        def side(text: str) -> Any:
            return (text if self.is_text else json.loads(text)) if text else None

        return {
            "place": self.place,
            "keyword": self.keyword,
            "before": side(self.before),
            "after": side(self.after),
            "sentence": self.sentence,
        }


def view_changes(
    before: ToolDefinition | None, after: ToolDefinition | None
) -> tuple[ViewChange, ...]:
    """Everything that a model sees otherwise, the text of the tool first, then by parameter.

    Args:
        before: The tool as it is; None for one that is new.
        after: As it would be; None for one that is removed.

    Example:
        >>> from dataclasses import replace
        >>> from agentkit.tools.rules import OneOf
        >>> loan = ToolDefinition.from_schema("loan", "What a loan costs.", {
        ...     "type": "object", "properties": {"periods": {"type": "integer"}}})
        >>> rule = OneOf(parameter="periods", values=(36, 48))
        >>> learned = replace(loan, specification=replace(loan.specification, rules=(rule,)))
        >>> for change in view_changes(loan, learned):
        ...     print(change.place, change.keyword, change.sentence)
         description The description changes.
        periods enum periods may only be 36 or 48.
    """
    old, new = _flat(before), _flat(after)
    keys = sorted(old.keys() | new.keys())
    return tuple(
        ViewChange(place=key[0], keyword=key[1], before=old.get(key, ""), after=new.get(key, ""))
        for key in keys
        if old.get(key, "") != new.get(key, "")
    )


def _flat(tool: ToolDefinition | None) -> _Flat:
    """Every part that a model sees, by its place and keyword."""
    if tool is None:
        return {}
    found = {("", DESCRIPTION): tool.text} if tool.text else {}
    for place, keyword, value in _parts(tool.parameters_schema, ""):
        is_text = keyword == DESCRIPTION and isinstance(value, str)
        found[place, keyword] = value if is_text else _json(value)
    return found


def _parts(schema: Any, place: str) -> Iterator[tuple[str, str, Any]]:
    """Place, keyword and value of everything that a schema says."""
    if not isinstance(schema, Mapping):  # true and false are schemas too
        yield place, "schema", schema
        return
    for keyword, value in schema.items():
        if keyword == "properties" and isinstance(value, Mapping):
            for name, below in value.items():
                yield _below(place, name), PARAMETER, True
                yield from _parts(below, _below(place, name))
        elif keyword == "items" and isinstance(value, Mapping):
            yield from _parts(value, f"{place}[]")
        elif keyword == "required" and _is_names(value):
            yield from ((_below(place, name), keyword, True) for name in value)
        elif keyword == "dependentRequired" and isinstance(value, Mapping):
            yield from ((_below(place, name), "requires", others) for name, others in value.items())
        elif place or (keyword, value) != ("type", "object"):
            is_odd = keyword == DESCRIPTION and not (place and isinstance(value, str))
            yield place, f"x-{keyword}" if is_odd else keyword, value


def _below(place: str, name: object) -> str:
    return f"{place}.{name}" if place else str(name)


def _is_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=repr)


def _sentence(change: ViewChange) -> str:
    """Each keyword that matters to people in a sentence; any other as what stood and stands."""
    name, keyword = change.place or "the call", change.keyword
    verb = _VERBS.get(keyword)
    if verb is not None:
        whose = f"The description of {name}" if change.place else "The description"
        is_kept = bool(change.before) and bool(change.after)
        said = verb[2] if is_kept else verb[0] if change.after else verb[1]
        return f"{whose if change.is_text else name} {said}."
    before, after = (json.loads(side) if side else None for side in (change.before, change.after))
    lists = [side for side in (before, after) if isinstance(side, list)]
    if keyword == "requires" and lists:
        others = _listed(lists[-1], "and")
        if after is None:
            return f"{name} may be given without {others}."
        return f"When {name} is given, {others} must be given too."
    if keyword == "enum" and lists:
        return f"{name} {_values(before, after)}."
    if keyword in _BOUNDS:
        return f"{name} {_bound(_BOUNDS[keyword], before, after)}."
    was = f" (before: {change.before})" if change.before and change.after else ""
    return f"{name}: {keyword} {change.after or 'is removed'}{was}."


_VERBS: Mapping[str, tuple[str, str, str]] = {
    DESCRIPTION: ("is added", "is removed", "changes"),
    PARAMETER: ("is a new parameter", "is no longer a parameter", ""),
    "required": ("must be given", "may be left out", ""),
}
"""What is said of a keyword that is added, removed or changed."""


def _values(before: Sequence[Any] | None, after: Sequence[Any] | None) -> str:
    """How the list of allowed values changes."""
    if after is None:
        return f"may be any value, no longer only {_listed(before or (), 'or')}"
    if before is None:
        return f"may only be {_listed(after, 'or')}"
    had, has = set(map(_json, before)), set(map(_json, after))
    come = [value for value in after if _json(value) not in had]
    gone = [value for value in before if _json(value) not in has]
    said = [f"may also be {_listed(come, 'or')}"] if come else []
    said += [f"may no longer be {_listed(gone, 'or')}"] if gone else []
    return " and ".join(said) or "lists its values in another order"


def _bound(words: str, before: Any, after: Any) -> str:
    if after is None:
        return f"need not be {words.format(_plain(before))} any more"
    was = "" if before is None else f" (before: {words.format(_plain(before))})"
    return f"must be {words.format(_plain(after))}{was}"


def _listed(values: Sequence[Any], joint: str) -> str:
    words = [_plain(value) for value in values]
    return f" {joint} ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def library_changes(before: Library, after: Library) -> Mapping[str, tuple[ViewChange, ...]]:
    """What models see otherwise with another library, by the names of the tools that differ."""
    found = {}
    for name in sorted({one.name for one in (*before.all_definitions, *after.all_definitions)}):
        tools = [library.get(name) for library in (before, after)]
        sides = [None if tool is None else tool.definition for tool in tools]
        changes = view_changes(*sides)
        if changes or None in sides:
            found[name] = changes
    return found


# --- What no model sees of a definition, field by field -------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """One field that a change touches, and that no model sees.

    Attributes:
        field: Where: ``tags``, ``examples``, ``signature.effects``, ``body``.
        before: The text as it was, of a list one entry a line; empty for none.
        after: The text as it is.
    """

    field: str
    before: str
    after: str

    def to_json(self) -> dict[str, Any]:
        """The difference as a JSON object."""
        return asdict(self)


def unseen_changes(before: ToolDefinition | None, after: ToolDefinition) -> tuple[Difference, ...]:
    """Every field in which two revisions of a tool differ and that no model sees.

    Example:
        >>> from dataclasses import replace
        >>> from agentkit.tools.definition import Description
        >>> ping = ToolDefinition(name="ping", description=Description(summary="Ping a host."))
        >>> tagged = replace(ping, description=Description(summary="Ping.", tags=("network",)))
        >>> [(one.field, one.after) for one in unseen_changes(ping, tagged)]
        [('tags', 'network')]
    """
    old, new = _unseen(before or ToolDefinition(name=after.name)), _unseen(after)
    return tuple(
        Difference(field=name, before=old.get(name, ""), after=new.get(name, ""))
        for name in {**old, **new}
        if old.get(name, "") != new.get(name, "")
    )


def _unseen(definition: ToolDefinition) -> dict[str, str]:
    """What no model sees, as texts by field; of a list one entry a line."""
    told, signature = definition.specification, definition.to_json()["signature"]
    parts: dict[str, Iterable[str]] = {
        "tags": definition.description.tags,
        "pre": told.pre,
        "post": told.post,
        "text": told.text,
        "complexity": (told.complexity,),
        "examples": map(_call, definition.examples),
        **{f"signature.{name}": (_field_json(part),) for name, part in signature.items()},
        "body": (_program_text(definition),),
    }
    parts.pop("signature.parameters", None)
    return {name: "\n".join(lines) for name, lines in parts.items()}


def _program_text(definition: ToolDefinition) -> str:
    """The program of a composite; empty for a primitive."""
    if definition.body is None:
        return ""
    program = program_of(definition)
    if program is None:  # not one that can run, and still one that can be shown
        return _field_json(definition.body)
    return render(program, definition.name)


def _call(example: Example) -> str:
    call = f"{_field_json(dict(example.arguments))} -> {_field_json(example.result)}"
    return f"{example.query!r}: {call}" if example.query else call


def _field_json(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=repr)
