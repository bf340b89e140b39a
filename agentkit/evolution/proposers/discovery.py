"""Discovered contracts: the parameters that a definition lacks, from what its tool says and takes.

Only tools whose code is not ours are looked at. A name is learned when refusals ask for it that
did not give it, or when a tool that refuses names it does not know took it; types from what it
states and what it took. What refusals and accepted calls contradict is not learned. That a result
looks wrong teaches nothing here: without a verifier nobody knows what was meant.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from agentkit.composites.contracts import is_declared_by_code
from agentkit.evolution.proposal import PassedOverReason
from agentkit.evolution.proposers.constraints import LONGEST_TEXT, is_for_some_calls
from agentkit.evolution.proposers.observed import (
    ObservedCall,
    RuleSuggestion,
    ToolEvidence,
    ToolRecord,
    is_enough,
    is_sound,
)
from agentkit.evolution.proposers.origins import gave_name, heard_before
from agentkit.evolution.trajectories import parts_of
from agentkit.evolution.validation.approvals import speaks_as
from agentkit.evolution.validation.report import OriginKind, TextOrigin
from agentkit.evolution.validation.texts import folded, pattern, stands_in, words
from agentkit.messages import JsonObject
from agentkit.tools.error_messages import plural
from agentkit.tools.rules import Takes
from agentkit.tools.schema import ANY_TYPE, allowed_types

# --- What one refusal says of names --------------------------------------------------------------

_NAME = re.compile(r"[A-Za-z_][\w-]{0,39}", re.ASCII)
_IN_LIST = re.compile(r"[^\s,'\"`\u2018\u2019\u201c\u201d]+")
_MOST_NAMES = 32
"""Names of one message, and of one tool. What names more is no message about a call."""

_MOST_PARTS = 200
_PLACES = frozenset({"body", "query", "path", "params", "args", "arguments", "input", "data"})
_TYPES = {
    **dict.fromkeys(("string", "str", "text"), "string"),
    **dict.fromkeys(("integer", "int", "whole number"), "integer"),
    **dict.fromkeys(("number", "float", "numeric", "real number"), "number"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    **dict.fromkeys(("array", "list"), "array"),
    **dict.fromkeys(("object", "dict", "dictionary"), "object"),
}


def _says(section: str) -> re.Pattern[str]:
    return pattern("statements", section)


@dataclass(kw_only=True, slots=True)
class NamesSaid:
    """The names of parameters in one refusal.

    Attributes:
        missing: Those that the call should have given, in the order of the text.
        unexpected: Those that the tool does not know.
        types: The types that it wants of some.
    """

    missing: dict[str, None] = field(default_factory=dict)
    unexpected: dict[str, None] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)


def names_in_error(text: str, path: str = "") -> NamesSaid:
    """What an error says of names: in words of Python, pydantic, JSON Schema, zod and of authors.

    Args:
        text: The error.
        path: The parameter that the failure points at, if any.

    Example:
        >>> list(names_in_error("f() missing 2 required positional arguments: 'n' and 'k'").missing)
        ['n', 'k']
        >>> list(names_in_error("f() got an unexpected keyword argument 'm'").unexpected)
        ['m']
        >>> names_in_error("`days` must be an integer").types
        {'days': 'integer'}
    """
    text, said = text[:LONGEST_TEXT], NamesSaid()
    for section, into in (("missing", said.missing), ("unexpected", said.unexpected)):
        for found in _says(section).finditer(text):
            listed = next(group for group in found.groups() if group is not None)
            if section == "unexpected" or not is_for_some_calls(text, found.start()):
                into.update(dict.fromkeys(filter(_is_name, _listed(listed))))
    for found in _says("typed").finditer(text):
        if _is_name(found["name"]) and not is_for_some_calls(text, found.start()):
            said.types.setdefault(found["name"], _TYPES[found["type"].casefold()])
    pairs = [(found[1], found[2]) for found in _says("about a name").finditer(text)]
    pairs += [(path, text)] if path else []
    for name, message in (*pairs, *_structured(text)):
        if _is_name(name):
            _sort(name, message, said)
    if len({*said.missing, *said.unexpected, *said.types}) > _MOST_NAMES:
        return NamesSaid()
    return said


def _listed(names: str) -> Iterator[str]:
    return (name for name in _IN_LIST.findall(names) if name != "and")


def _is_name(name: str) -> bool:
    known = words("statements", "words that name no parameter")
    is_name = _NAME.fullmatch(name) is not None and not name.startswith("__")
    return is_name and name.casefold() not in known


def _sort(name: str, message: str, said: NamesSaid) -> None:
    """Note what a message says that is known to be about one name."""
    if _says("is unexpected").search(message):
        said.unexpected[name] = None
        return
    if _says("is missing").search(message):
        said.missing[name] = None
    if found := _says("type").search(message):
        said.types.setdefault(name, _TYPES[found[1].casefold()])


def _structured(text: str) -> Iterator[tuple[str, str]]:
    """The names and messages in an error that is JSON, as those of FastAPI and zod are."""
    start = min((at for at in (text.find("["), text.find("{")) if at >= 0), default=-1)
    if start < 0:
        return
    try:
        waiting = [json.JSONDecoder().raw_decode(text, start)[0]]
    except (ValueError, RecursionError):  # it is no JSON, or cut
        return
    for _ in range(_MOST_PARTS):
        if not waiting:
            return
        part = waiting.pop()
        if isinstance(part, list):
            waiting.extend(part)
        elif isinstance(part, dict):
            where = next(
                (part[key] for key in ("loc", "path", "field", "param") if key in part), ""
            )
            steps = where if isinstance(where, list) else [where]
            names = [step for step in steps if step not in _PLACES]
            told = [part.get(key, "") for key in ("type", "code", "msg", "message")]
            expected = part.get("expected")
            told += [f"expected {expected}"] if isinstance(expected, str) else []
            message = " ".join(one for one in told if isinstance(one, str))
            if len(names) == 1 and isinstance(names[0], str):
                yield names[0].lstrip("/"), message
            keys = part.get("keys")  # zod lists names that it does not know
            yield from ((key, message) for key in keys or () if isinstance(key, str))
            waiting.extend(part.values())


# --- What the calls of a tool show of one name ---------------------------------------------------


@dataclass(kw_only=True, slots=True)
class _Shown:
    """What was seen of one name, call by call in the order of the episodes."""

    missing: list[ObservedCall] = field(default_factory=list)
    unexpected: list[ObservedCall] = field(default_factory=list)
    typed: list[tuple[ObservedCall, str]] = field(default_factory=list)
    given: list[ObservedCall] = field(default_factory=list)
    without: list[ObservedCall] = field(default_factory=list)

    @property
    def support(self) -> list[ObservedCall]:
        """The calls that show that there is such a parameter."""
        return [*self.missing, *(call for call, _ in self.typed), *self.given]


def _shown(record: ToolRecord) -> dict[str, _Shown]:
    """What the calls of a tool show of names, in the order in which it asks for them."""
    found: dict[str, _Shown] = defaultdict(_Shown)
    for call in sorted(record.refused, key=lambda call: len(call.arguments)):  # most lack first
        _note_refusal(call, found)
    for call in record.accepted:
        for name in filter(_is_name, call.arguments):
            found[name].given.append(call)
    for name, shown in found.items():
        shown.without = [call for call in record.accepted if name not in call.arguments]
    known = sorted(found, key=lambda name: -len(found[name].support))[:_MOST_NAMES]
    return {name: shown for name, shown in found.items() if name in known}


def _note_refusal(call: ObservedCall, found: dict[str, _Shown]) -> None:
    """Note what a refusal says, as far as it explains its call: who gave a name did not lack it."""
    if call.refusal is None:
        return
    given, said = call.arguments, names_in_error(call.refusal.rule, call.refusal.path)
    for name in filter(lambda one: one not in given, said.missing):
        found[name].missing.append(call)
    for name in said.unexpected.keys() & given.keys():
        found[name].unexpected.append(call)
    types = {**_types_of_values(call.refusal.rule, given), **said.types}
    for name in types.keys() & given.keys():
        if not is_of_type(given[name], types[name]):
            found[name].typed.append((call, types[name]))


def _types_of_values(text: str, given: JsonObject) -> dict[str, str]:
    """The type that an error wants of the only value that has the type that it complains of."""
    said = _says("unnamed type").search(text[:LONGEST_TEXT])
    if said is None:
        return {}
    wrong = said["given"] or said["other"]
    meant = [steps for steps, value in parts_of(given) if type(value).__name__ == wrong]
    is_clear = len(meant) == 1 and len(meant[0]) == 1
    return {str(meant[0][0]): _TYPES[said["type"] or "integer"]} if is_clear else {}


def is_of_type(value: Any, wanted: str) -> bool:
    """Whether a value has a JSON type; a list of anything is an ``array``."""
    own = type_name(value)
    return (
        own == wanted
        or (own, wanted) == ("integer", "number")
        or (own[-2:], wanted) == ("[]", "array")
    )


_DEEPEST = 3


def type_name(value: Any, depth: int = 0) -> str:
    """The JSON type of a value, a list with its items.

    Example:
        >>> type_name([[1, 2.5], [3]]), type_name(True), type_name(2.0), type_name([1, "a"])
        ('number[][]', 'boolean', 'number', 'array')
    """
    kind = type(value)
    if kind not in {list, tuple}:
        return _KINDS.get(kind, "object")
    items = {type_name(one, depth + 1) for one in value} if depth < _DEEPEST else set()
    both = _together(items)
    return f"{both[0]}[]" if len(both) == 1 else "array"


_KINDS = {
    type(None): "null",
    bool: "boolean",
    str: "string",
    int: "integer",
    float: "number",
}
_MOST_TYPES = 2


def _together(names: set[str]) -> tuple[str, ...]:
    """The types that hold all of these; none when they are too many to say anything."""
    names = {
        name
        for name in names
        if name.replace("integer", "number") == name
        or name.replace("integer", "number") not in names
    }
    if any(name.endswith("[]") for name in names):
        names = names - {"array"}  # that of an empty list
    return tuple(sorted(names)) if len(names) <= _MOST_TYPES else ()


# --- From what was shown to a rule ---------------------------------------------------------------


def discovered_lessons(seen: ToolEvidence) -> Iterator[RuleSuggestion]:
    """The parameters that calls show and that the definition does not say yet."""
    if is_declared_by_code(seen.definition):
        return
    found = _shown(seen.record)
    declared = seen.definition.signature.properties
    is_strict = any(  # that a declared name is missing is said by the schema, not by the tool
        one.unexpected or (one.missing and name not in declared) for name, one in found.items()
    )
    had = {
        one.parameter: one for one in seen.definition.specification.rules if isinstance(one, Takes)
    }
    for name, shown in found.items():
        lesson = _lesson(name, shown, seen, had.get(name), is_strict=is_strict)
        if lesson is not None:
            yield lesson


def _lesson(
    name: str, shown: _Shown, seen: ToolEvidence, had: Takes | None, *, is_strict: bool
) -> RuleSuggestion | None:
    definition, knobs = seen.definition, seen.knobs
    is_declared = name in definition.signature.properties
    asked = bool(shown.missing) and is_enough([*shown.missing, *shown.given], knobs)
    is_shown = asked or is_enough([one for one, _ in shown.typed], knobs)
    is_shown = is_shown or (is_strict and is_enough(shown.support, knobs))
    if shown.unexpected and (shown.support or had):
        return _refused_now(name, shown, seen, had)
    if not (is_shown or had or is_declared):
        if shown.missing or shown.typed:
            count = plural(len(shown.missing) + len(shown.typed), "refused call")
            needed = f"{knobs.min_failures} from {knobs.min_episodes} episodes are needed"
            _note(seen, name, "too_few", f"{count} asked for it; {needed}", shown)
        return None
    is_needed = asked and not shown.without
    if asked and shown.without:
        why = f"{plural(len(shown.missing), 'refusal')} say that it must be given; the tool took "
        why += f"{plural(len(shown.without), 'call')} without it"
        _note(seen, name, "contradicts_accepted", why, shown)
        if not (had or shown.given):
            return None
    if had is not None and had.required:
        is_needed = not is_enough(shown.without, knobs)
    rule = Takes(
        parameter=name,
        types=_types(name, shown, seen, had),
        required=is_needed,
        calls=len(shown.support),
    )
    if not _is_news(rule, had, seen):
        return None
    if not is_sound(rule, definition, seen.library):
        why = f"{plural(len(shown.support), 'call')} show it; schema or worked calls contradict it"
        _note(seen, name, "closed_contract", why, shown)
        return None
    return _suggestion(rule, shown, seen)


def _refused_now(
    name: str, shown: _Shown, seen: ToolEvidence, had: Takes | None
) -> RuleSuggestion | None:
    """A name that the tool refuses by now goes again; what it takes and refuses is not learned."""
    last = shown.given[-1] if shown.given else None
    calls = seen.record.calls
    after = 0 if last is None else 1 + next(at for at, one in enumerate(calls) if one is last)
    later = [one for one in calls[after:] if any(one is call for call in shown.unexpected)]
    if had is not None and is_enough(later, seen.knobs):
        return RuleSuggestion(
            rule=had,
            drops=True,
            basis="The tool does not know it any more",
            failures=len(later),
            episodes=tuple(dict.fromkeys(one.episode_id for one in later)),
        )
    why = f"{plural(len(shown.unexpected), 'refusal')} say that there is none; "
    _note(seen, name, "disagreement", why + f"{plural(len(shown.support), 'call')} show it", shown)
    return None


def _types(name: str, shown: _Shown, seen: ToolEvidence, had: Takes | None) -> tuple[str, ...]:
    """The types that refusals state, else those that were taken; what was known stays beside."""
    part = seen.definition.signature.properties.get(name, {})
    if allowed_types(part, root=seen.definition.signature.parameters) != ANY_TYPE:
        return ()  # the contract says them
    stated = {wanted for _, wanted in shown.typed}
    taken = _taken(name, shown, seen, had)
    if len(stated) == 1 and is_enough([call for call, _ in shown.typed], seen.knobs):
        (wanted,) = stated
        strangers = [one for one in shown.given if not is_of_type(one.arguments[name], wanted)]
        if not strangers:
            finer = {one for one in taken if one.endswith("[]")} if wanted == "array" else set()
            return _together(finer) or (wanted,)
        count = plural(len(strangers), "call")
        why = f"refusals want the type {wanted}; the tool took {count} with another"
        _note(seen, name, "contradicts_accepted", why, shown)
    known = set(had.types) if had else set()
    is_attested = had is not None or is_enough(shown.support, seen.knobs)
    return _together(known | taken) if taken and is_attested else tuple(sorted(known))


def _taken(name: str, shown: _Shown, seen: ToolEvidence, had: Takes | None) -> set[str]:
    """The types of the values that were taken.

    That all of them were whole is no reason to forbid fractions: it takes a refusal to tell.
    """
    taken = {type_name(call.arguments[name]) for call in shown.given}
    is_whole = (had is not None and "integer" in had.types) or _refuses_fractions(name, shown, seen)
    if is_whole and "number" not in taken:
        return taken
    return {one.replace("integer", "number") for one in taken}


def _refuses_fractions(name: str, shown: _Shown, seen: ToolEvidence) -> bool:
    """Whether a fraction was refused that is taken as a whole number.

    The refusal says so, or all else in the call is as in one that was taken.
    """

    def others(call: ObservedCall) -> dict[str, tuple[Any, str]]:
        named = call.arguments.items()
        return {other: (value, type_name(value)) for other, value in named if other != name}

    whole = [others(call) for call in shown.given if type(call.arguments[name]) is int]
    fractions = [c for c in seen.record.refused if type(c.arguments.get(name)) is float]
    said = [call for call, wanted in shown.typed if wanted == "integer"]
    return bool(whole) and any(
        any(call is one for one in said) or others(call) in whole for call in fractions
    )


def _is_news(rule: Takes, had: Takes | None, seen: ToolEvidence) -> bool:
    if had is not None:
        return (rule.types, rule.required) != (had.types, had.required)
    signature = seen.definition.signature
    is_said = rule.parameter in signature.properties and not rule.types
    return not is_said or (rule.required and rule.parameter not in signature.required)


def _suggestion(rule: Takes, shown: _Shown, seen: ToolEvidence) -> RuleSuggestion:
    asked = [*shown.missing, *(call for call, _ in shown.typed)]
    basis = "The tool says so when it refuses a call" if asked else "The tool takes it"
    taken = f"; {plural(len(shown.given), 'accepted call')} gave it" if shown.given else ""
    return RuleSuggestion(
        rule=rule,
        basis=f"{basis}{taken}, confidence {rule.confidence:.0%}",
        failures=len(asked),
        episodes=tuple(dict.fromkeys(call.episode_id for call in (*asked, *shown.given))),
        origins=(_origin(rule.parameter, asked, shown.given, seen),),
    )


def _note(seen: ToolEvidence, name: str, reason: PassedOverReason, why: str, shown: _Shown) -> None:
    failures = len(shown.missing) + len(shown.unexpected) + len(shown.typed)
    seen.notes(reason, why, name, failures)


# --- Whose word a name is ------------------------------------------------------------------------


def _origin(
    name: str, asked: Sequence[ObservedCall], given: Sequence[ObservedCall], seen: ToolEvidence
) -> TextOrigin:
    """Whose word a name is: the server's where refusals named it to two callers who did not."""
    own = [call for call in asked if not gave_name(call, name, seen.definition)]
    is_own = any(not one.party & other.party for one, other in combinations(own[:_MOST_NAMES], 2))
    kind: OriginKind = speaks_as(seen.definition, seen.library) if is_own else "user"
    return TextOrigin(
        text=name,
        kind=kind,
        where=f"{seen.definition.name}, refusing a call" if asked else "calls that it took",
        is_used=any(_is_unprompted(name, call) for call in given),
    )


def _is_unprompted(name: str, call: ObservedCall) -> bool:
    """Whether a call gave a name by itself: before any tool said anything, and undictated.

    Ordinary words are the user's own; a name with signs or capitals was read somewhere.
    """
    is_word = name.isalpha() and name.islower()
    is_dictated = not is_word and stands_in(folded(name), folded(call.request))
    return call.is_from_start and not heard_before(call) and not is_dictated
