"""What a change of a contract means for those who rely on it: compatible, or breaking.

Of arguments a contract may take more and must not take less; of a result it may promise more and
must not promise less. What can not be told from the keywords counts as breaking.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from agentkit.tools.definition import Effects, Signature

Impact = Literal["breaking", "compatible"]

_LOWER = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_UPPER = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})
_WORDS_ONLY = frozenset({"title", "description", "default", "examples", "deprecated", "$comment"})
_WALKED = frozenset({"properties", "required", "type", "enum", "items", "additionalProperties"})
_DEEPEST = 32
_ABSENT = "(absent)"


@dataclass(frozen=True, kw_only=True, slots=True)
class ContractChange:
    """One change of L1.

    Attributes:
        place: What it is about: ``parameters.days``, ``result.city``, ``effects.writes``.
        keyword: Which keyword, or ``added``, ``removed``, ``required``.
        before: What was said; empty for nothing.
        after: What is said; empty for nothing.
        impact: Whether callers must be changed.
        words: The same in a sentence.
    """

    place: str
    keyword: str
    before: str
    after: str
    impact: Impact
    words: str

    def to_json(self) -> dict[str, str]:
        """The change as a JSON object."""
        return asdict(self)


def contract_changes(before: Signature, after: Signature) -> tuple[ContractChange, ...]:
    """Every change between two contracts, in the order in which they are read.

    Example:
        >>> def contract(**properties):
        ...     return Signature(parameters={"type": "object", "properties": properties})
        >>> days = {"type": "integer", "maximum": 14}
        >>> for change in contract_changes(contract(days=days), contract(
        ...     days={**days, "maximum": 7}, city={"type": "string"}
        ... )):
        ...     print(change.impact, change.words)
        breaking parameters.days: maximum 14 became 7
        compatible parameters.city is new and optional
    """
    found = list(_compare(before.parameters, after.parameters, "parameters", 0))
    found += _results(before.result, after.result)
    found += _effects(before.effects, after.effects)
    return tuple(found)


def _results(before: Any, after: Any) -> Iterator[ContractChange]:
    if before is None or after is None:
        if before != after:
            declared = before is None
            impact: Impact = "compatible" if declared else "breaking"
            told = "declared" if declared else "no longer declared"
            yield _change("result", "result", (before, after), impact, f"the result is {told}")
        return
    backwards = {
        (change.place, change.keyword): change.impact
        for change in _compare(after, before, "result", 0)
    }
    for change in _compare(before, after, "result", 0):
        flipped = backwards.get((change.place, change.keyword), "breaking")
        if change.keyword in {"added", "removed"}:
            flipped = "compatible" if change.keyword == "added" else "breaking"
        yield ContractChange(
            place=change.place,
            keyword=change.keyword,
            before=change.before,
            after=change.after,
            impact=flipped,
            words=change.words.replace(" is new and optional", " is new"),
        )


def _effects(before: Effects, after: Effects) -> Iterator[ContractChange]:
    old, new = before.to_json(), after.to_json()
    for name in dict.fromkeys((*old, *new)):
        was, becomes = old.get(name), new.get(name)
        if was == becomes:
            continue
        worse = name in {"writes", "destructive", "open_world"} and becomes is not False
        lost = name == "idempotent" and was is True
        impact: Impact = "breaking" if (worse and was is not True) or lost else "compatible"
        words = f"effects.{name}: {_shown(was)} became {_shown(becomes)}"
        yield _change(f"effects.{name}", name, (was, becomes), impact, words)


def _compare(before: Any, after: Any, place: str, depth: int) -> Iterator[ContractChange]:
    if before == after or depth > _DEEPEST:
        return
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        yield _change(place, "schema", (before, after), "breaking", f"{place} is another schema")
        return
    yield from _types(before, after, place)
    yield from _values(before, after, place)
    yield from _properties(before, after, place, depth)
    if "items" in before or "items" in after:
        old, new = before.get("items", {}), after.get("items", {})
        yield from _compare(old, new, f"{place}[]", depth + 1)
    for key in dict.fromkeys((*before, *after)):
        if key not in _WALKED and key not in _WORDS_ONLY and before.get(key) != after.get(key):
            yield _keyword(key, before.get(key), after.get(key), place)


def _types(before: Mapping[str, Any], after: Mapping[str, Any], place: str) -> Iterator[Any]:
    old, new = _kinds(before), _kinds(after)
    if old == new:
        return
    taken = new | ({"integer"} if "number" in new else set())
    wider = not new or (bool(old) and old <= taken)
    was, becomes = before.get("type"), after.get("type")
    words = f"{place}: type {_shown(was)} became {_shown(becomes)}"
    yield _change(place, "type", (was, becomes), "compatible" if wider else "breaking", words)


def _values(before: Mapping[str, Any], after: Mapping[str, Any], place: str) -> Iterator[Any]:
    old, new = before.get("enum"), after.get("enum")
    if old == new:
        return
    gone = [one for one in old or () if new is not None and one not in new]
    come = [one for one in new or () if old is not None and one not in old]
    if old is None:
        words = f"{place} takes only {_list(new)}"
    elif new is None:
        words = f"{place} takes other values than {_list(old)} too"
    else:
        parts = [f"no longer {_list(gone)}"] if gone else []
        parts += [f"{'also' if not gone else 'but'} {_list(come)}"] if come else []
        words = f"{place} takes {', '.join(parts) or 'its values in another order'}"
    impact: Impact = "breaking" if gone or old is None else "compatible"
    yield _change(place, "enum", (old, new), impact, words)


def _properties(
    before: Mapping[str, Any], after: Mapping[str, Any], place: str, depth: int
) -> Iterator[ContractChange]:
    old, new = before.get("properties", {}), after.get("properties", {})
    needed, needs = set(before.get("required", ())), set(after.get("required", ()))
    for name in dict.fromkeys((*old, *new)):
        where = f"{place}.{name}"
        if name not in new:
            words = f"{where} is gone"
            yield _change(where, "removed", (old[name], None), "breaking", words)
        elif name not in old:
            is_needed = name in needs
            words = f"{where} is new and {'required' if is_needed else 'optional'}"
            impact: Impact = "breaking" if is_needed else "compatible"
            yield _change(where, "added", (None, new[name]), impact, words)
        else:
            if (name in needed) != (name in needs):
                is_needed = name in needs
                words = f"{where} is {'now required' if is_needed else 'optional now'}"
                impact = "breaking" if is_needed else "compatible"
                yield _change(where, "required", (name in needed, is_needed), impact, words)
            yield from _compare(old[name], new[name], where, depth + 1)
    was, becomes = before.get("additionalProperties"), after.get("additionalProperties")
    if was != becomes:
        is_open = becomes in (None, True, {})
        words = f"{place} takes {'other fields too' if is_open else 'fewer other fields'}"
        yield _change(
            place,
            "additionalProperties",
            (was, becomes),
            "compatible" if is_open or was is False else "breaking",
            words if was is not False or is_open else f"{place} takes more other fields",
        )


def _keyword(key: str, was: Any, becomes: Any, place: str) -> ContractChange:
    words = f"{place}: {key} {_shown(was)} became {_shown(becomes)}"
    if was is None:
        words = f"{place}: {key} {_shown(becomes)} is new"
    elif becomes is None:
        words = f"{place}: {key} {_shown(was)} is gone"
    return _change(place, key, (was, becomes), _impact(key, was, becomes), words)


def _impact(key: str, was: Any, becomes: Any) -> Impact:
    if becomes is None:
        return "compatible"
    wider: Callable[[Any, Any], bool] | None = None
    if key in _LOWER:
        wider = _less
    elif key in _UPPER:
        wider = _more
    elif key in {"anyOf", "oneOf"} and isinstance(was, list) and isinstance(becomes, list):
        return "compatible" if all(one in becomes for one in was) else "breaking"
    return "compatible" if wider is not None and wider(becomes, was) else "breaking"


def _less(one: Any, other: Any) -> bool:
    return _is_number(one) and _is_number(other) and one <= other


def _more(one: Any, other: Any) -> bool:
    return _is_number(one) and _is_number(other) and one >= other


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    kind = schema.get("type")
    return {kind} if isinstance(kind, str) else set(kind or ())


def _list(values: Any) -> str:
    return ", ".join(map(_shown, values))


def _shown(value: Any) -> str:
    return _ABSENT if value is None else json.dumps(value, ensure_ascii=False)


def _change(
    place: str, keyword: str, sides: tuple[Any, Any], impact: Impact, words: str
) -> ContractChange:
    was, becomes = ("" if side is None else json.dumps(side, ensure_ascii=False) for side in sides)
    return ContractChange(
        place=place, keyword=keyword, before=was, after=becomes, impact=impact, words=words
    )
