"""Answers to BFCL's questions, right and wrong ones, made from their gold calls.

Right answers to a single-turn question render the gold in several ways; wrong ones change one thing at
a time, and nothing is drawn at random. The gold of a multi-turn question is altered in one place that
seeded dice choose.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentkit.evaluation import FinalState, GoldCall, Task

Calls = tuple[tuple[str, dict[str, Any]], ...]
"""Name and arguments of each call."""

Gold = Sequence[Mapping[str, Mapping[str, Sequence[Any]]]]


@dataclass(frozen=True, kw_only=True)
class Output:
    """One answer.

    Attributes:
        kind: How it was made.
        calls: What our runtime would hold; None: arguments that are no JSON object.
        source: The same with its arguments as source text, where that is another thing.
        is_json: Whether a tool call could hold it; the others are compared and counted apart.
    """

    kind: str
    calls: Calls | None
    source: Calls | None = None
    is_json: bool = True


def outputs(gold: Gold, functions: Sequence[Mapping[str, Any]], language: str) -> Iterator[Output]:
    """Every answer to one question."""
    schemas = {one["name"]: one["parameters"] for one in functions}
    rendered = {
        kind: tuple(
            (name, _arguments(allowed, schemas[name]["properties"], kind, language))
            for call in gold
            for name, allowed in call.items()
        )
        for kind in ("first", "last", "fewest", "most")
    }
    yield from (Output(kind=f"gold:{kind}", calls=calls) for kind, calls in rendered.items())
    if language != "python":
        yield from _native(gold, schemas, language)
    base = rendered["first"]
    for kind, calls in _changed_calls(base, list(schemas)):
        yield Output(kind=kind, calls=calls)
    for changed in _one_argument(base, schemas):
        values = [one for _, given in changed.calls or () for one in given.values()]
        if language == "python" or all(type(one) is str for one in values):
            yield changed
    yield Output(kind="malformed", calls=None, is_json=False)


def free_outputs(functions: Sequence[Mapping[str, Any]]) -> Iterator[Output]:
    """Answers to a question without gold calls."""
    name = functions[0]["name"] if functions else "anything"
    yield Output(kind="nothing", calls=())
    yield Output(kind="bare call", calls=((name, {}),))
    yield Output(kind="call", calls=((name, {"x": 1}),))
    yield Output(kind="unknown tool", calls=(("no_such_tool", {"x": None}),))
    yield Output(kind="two calls", calls=((name, {}), (name, {})))
    yield Output(kind="malformed", calls=None, is_json=False)


def _native(gold: Gold, schemas: Mapping[str, Any], language: str) -> Iterator[Output]:
    """Gold as JSON values, with the source text that upstream reads as the same values."""
    for kind in ("first", "last"):
        pairs = [
            (name, allowed, schemas[name]["properties"])
            for call in gold
            for name, allowed in call.items()
        ]
        calls = tuple((name, _arguments(a, p, kind, "python")) for name, a, p in pairs)
        source = tuple((name, _arguments(a, p, kind, language)) for name, a, p in pairs)
        yield Output(kind=f"native:{kind}", calls=calls, source=source)
        for one in _one_argument(calls, schemas) if kind == "first" else ():
            yield replace(one, kind=f"native:{one.kind}", source=_sources(one, schemas, language))


def _one_argument(base: Calls, schemas: Mapping[str, Any]) -> Iterator[Output]:
    """The calls with one argument changed."""
    for at, (name, arguments) in enumerate(base):
        for kind, changed in _changed_arguments(arguments, schemas[name]):
            calls = (*base[:at], (name, changed), *base[at + 1 :])
            yield Output(kind=kind, calls=calls, is_json="tuple" not in kind)


def _sources(output: Output, schemas: Mapping[str, Any], language: str) -> Calls | None:
    """The calls with every argument that is not text as the source text of its declared type."""
    found = []
    for name, given in output.calls or ():
        properties = schemas.get(name, {}).get("properties", {})
        texts = {
            key: source_text(one, properties.get(key, {}), language) for key, one in given.items()
        }
        found.append((name, texts))
    return tuple(found)


def _arguments(
    allowed: Mapping[str, Sequence[Any]], properties: Mapping[str, Any], kind: str, language: str
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, options in allowed.items():
        given = [option for option in options if option != ""]
        if not given or (kind == "fewest" and "" in options):
            if not given and kind == "most" and options:
                found[name] = ""
            continue
        value = _instance(given[-1 if kind == "last" else 0], kind)
        schema = properties.get(name, {})
        found[name] = value if language == "python" else source_text(value, schema, language)
    return found


def _instance(answer: Any, kind: str) -> Any:
    """A value that an answer describes: in an object, one option of each key."""
    if isinstance(answer, Mapping):
        found: dict[str, Any] = {}
        for key, listed in answer.items():
            options = listed if isinstance(listed, list) else [listed]
            given = [option for option in options if option != ""]
            if given and not (kind == "fewest" and "" in options):
                found[key] = copy.deepcopy(given[-1 if kind == "last" else 0])
        return found
    if isinstance(answer, list):
        return [_instance(item, kind) for item in answer]
    return answer


def source_text(value: Any, schema: Mapping[str, Any], language: str) -> str:
    """A JSON value as upstream's Java or JavaScript reader takes it."""
    kind, item = schema.get("type", "any"), schema.get("items", {}).get("type", "any")
    if isinstance(value, list | tuple):
        parts = ", ".join(_element(one, item, language, kind) for one in value)
        if language == "javascript":
            return f"[{parts}]"
        if kind == "Array":
            return f"new {item}[]{{{parts}}}"
        return f"new ArrayList<>(Arrays.asList({parts}))" if parts else "new ArrayList<>()"
    if isinstance(value, Mapping):
        members = {key: _element(one, "", language, "") for key, one in value.items()}
        if language == "javascript":
            return "{" + ", ".join(f"{key}: {one}" for key, one in members.items()) + "}"
        puts = " ".join(f'put("{key}", {one});' for key, one in members.items())
        return f"new HashMap<String, Object>() {{{{ {puts} }}}}"
    return value if isinstance(value, str) else _number(value, kind)


def _element(value: Any, item: str, language: str, outer: str) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_element(one, '', language, '') for one in value)}]"
    if isinstance(value, str):
        keeps_quotes = language == "java" and outer == "Array"
        bare = (keeps_quotes and item in {"String", "char"}) or (item == "any" and outer != "")
        return value if bare else f'"{value}"'
    return _number(value, item)


def _number(value: Any, kind: str) -> str:
    suffix = {"long": "L", "float": "", "Bigint": "n"}.get(kind, "")
    return json.dumps(value) + suffix


def _changed_calls(base: Calls, names: Sequence[str]) -> Iterator[tuple[str, Calls]]:
    yield "calls:none", ()
    yield "calls:reversed", base[::-1]
    if base:
        yield "calls:first dropped", base[1:]
        yield "calls:last dropped", base[:-1]
        yield "calls:first doubled", (base[0], *base)
        yield "calls:one more", (*base, (names[-1], {}))
        yield "calls:wrong tool", ((names[-1] + "_2", base[0][1]), *base[1:])
        yield "calls:name in capitals", ((base[0][0].swapcase(), base[0][1]), *base[1:])
        yield "calls:dots as underscores", ((base[0][0].replace(".", "_"), base[0][1]), *base[1:])
        yield "calls:another tool", ((names[-1], base[0][1]), *base[1:])
    if len(base) > 1:
        yield "calls:first for last", (*base[:-1], base[0])
        yield "calls:rotated", (*base[1:], base[0])


def _changed_arguments(
    arguments: dict[str, Any], schema: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "arguments:none", {}
    yield "arguments:unknown one more", {**arguments, "no_such_argument": 1}
    for name in schema["properties"]:
        if name not in arguments:
            yield "arguments:undecided one more", {**arguments, name: "x"}
    for name, value in arguments.items():
        yield "arguments:one less", {key: arguments[key] for key in arguments if key != name}
        for kind, changed in _changed_values(value):
            yield f"value:{kind}", {**arguments, name: changed}


ALWAYS: Mapping[str, Any] = {
    "null": None,
    "empty text": "",
    "empty list": [],
    "empty object": {},
    "not a number": float("nan"),
    "huge": 10**400,
    "infinite": float("inf"),
    "true": True,
    "false": False,
    "zero": 0,
    "text": "something else",
    "deep": [[[[1]]]],
}
"""Values that stand in for any other."""


def _changed_values(value: Any) -> Iterator[tuple[str, Any]]:
    yield from ALWAYS.items()
    yield "in a list", [value]
    yield "in a tuple", (value,)
    yield "in an object", {"value": value}
    yield "as text", value if isinstance(value, str) else json.dumps(value)
    yield "as text twice", json.dumps(value)
    for kind, change in _CHANGES.items():
        if type(value).__name__ in kind.split(":")[0]:
            yield kind, change(value)
    if isinstance(value, list):
        yield from _changed_lists(value)
    if isinstance(value, dict):
        yield from _changed_objects(value)


_LOOK_ALIKES = str.maketrans("aeocAEO", "\u0430\u0435\u043e\u0441\u0410\u0415\u041e")
_CHANGES: Mapping[str, Callable[[Any], Any]] = {
    "int:as float": float,
    "int:plus one": lambda value: value + 1,
    "int:as boolean": bool,
    "int:negative": lambda value: -value,
    "float:as integer": int,
    "float:a little more": lambda value: value * 1.001 + 0.001,
    "float:rounded": round,
    "bool:negated": lambda value: not value,
    "bool:as integer": int,
    "bool:in words": str,
    "str:capitals": str.upper,
    "str:small": str.lower,
    "str:spaces around": lambda value: f"  {value} ",
    "str:without spaces": lambda value: value.replace(" ", ""),
    "str:tab for space": lambda value: value.replace(" ", "\t") + "\t",
    "str:full stop": lambda value: f"{value}.",
    "str:exclamation": lambda value: f"{value}!",
    "str:ignored signs": lambda value: f",./-_*^{value}",
    "str:single quotes": lambda value: f"'{value}'",
    "str:double quotes": lambda value: f'"{value}"',
    "str:line break": lambda value: f"{value}\n",
    "str:first letter less": lambda value: value[1:],
    "str:last letter less": lambda value: value[:-1],
    "str:cyrillic look-alikes": lambda value: value.translate(_LOOK_ALIKES),
    "str:full width": lambda value: "".join(
        chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" else sign for sign in value
    ),
    "str:dotted capital i": lambda value: value.replace("i", "\u0130").replace("ss", "\u00df"),
    "str:hyphen for minus": lambda value: value.replace("-", "\u2010").replace(" ", "\u00a0"),
    "str:combining": lambda value: f"{value}\u0301",
    "str:zero width": "\u200b".join,
    "str:half a surrogate pair": lambda value: f"{value}\ud800",
    "str:number in it": lambda value: (
        float(value) if value.replace(".", "", 1).isdecimal() and value.isascii() else 7
    ),
    "str:split": lambda value: value.split(),
    "str:letters": list,
}


def _changed_lists(value: list[Any]) -> Iterator[tuple[str, Any]]:
    yield "list:reversed", value[::-1]
    yield "list:one less", value[:-1]
    yield "list:one more", [*value, *value[-1:]]
    yield "list:as tuple", tuple(value)
    yield "list:null in it", [*value[:-1], None]
    if value:
        yield "list:first alone", value[0]
        for kind, changed in _changed_members(value[0]):
            yield f"list:first {kind}", [changed, *value[1:]]


def _changed_objects(value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "object:one more", {**value, "no_such_key": 1}
    yield "object:in capitals", {key.upper(): one for key, one in value.items()}
    yield "object:as a list", list(value)
    for key, one in value.items():
        yield "object:one less", {other: value[other] for other in value if other != key}
        yield "object:options", {**value, key: [one]}
        for kind, changed in _changed_members(one):
            yield f"object:{kind}", {**value, key: changed}


def _changed_members(value: Any) -> Iterator[tuple[str, Any]]:
    yield "null", None
    yield "as text", value if isinstance(value, str) else json.dumps(value)
    yield "in a list", [value]
    yield "in an object", {"value": value}
    yield "empty text", ""
    yield "huge", 10**400
    if isinstance(value, str):
        yield "capitals", value.upper()
        yield "ignored signs", f",./-_*^{value}"
        yield "other", f"{value}!"
    if isinstance(value, int | float):
        yield "as float", float(value)
        yield "plus one", value + 1
        yield "as boolean", bool(value)
    if isinstance(value, dict):
        yield "empty", {}
        yield "one more", {**value, "no_such_key": 1}
        for key, one in value.items():
            yield "one less", {other: value[other] for other in value if other != key}
            yield "null in it", {**value, key: None}
            yield "options", {**value, key: [one]}
    if isinstance(value, list):
        yield "reversed", value[::-1]
        yield "empty", []


# --- multi-turn --------------------------------------------------------------------------------

Turns = Sequence[Sequence[GoldCall]]
"""The calls of each user turn."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """Calls with which a question is answered, and how the gold was altered (``gold``: it was not)."""

    task: Task
    kind: str
    turns: Turns


def gold_of(task: Task) -> Turns:
    """The gold calls of each user turn."""
    return tuple(
        tuple(c for one in turn.expects if isinstance(one, FinalState) for c in one.calls)
        for turn in task.turns
    )


class Altering:
    """Alters the gold calls of a benchmark's questions; extra calls are those of other questions."""

    def __init__(self, tasks: Iterable[Task], dice: random.Random) -> None:
        self.dice = dice
        self.pool: dict[str, list[GoldCall]] = {}
        for call in (call for task in tasks for calls in gold_of(task) for call in calls):
            self.pool.setdefault(call.name, []).append(call)

    def trials(self, task: Task, each: int = 1) -> Iterator[Trial]:
        """The gold calls, and ``each`` alterations of each kind that is possible."""
        gold = gold_of(task)
        yield Trial(task=task, kind="gold", turns=gold)
        for kind, (places_of, change) in KINDS.items():
            for _ in range(each):
                turns = [list(calls) for calls in gold]
                places = list(places_of(task, turns))
                if places and change(self, task, turns, *self.dice.choice(places)) is not False:
                    yield Trial(task=task, kind=kind, turns=tuple(map(tuple, turns)))

    def another(self, value: Any) -> Any:
        """A value of the same type that is not this one."""
        match value:
            case bool():
                return not value
            case int() | float():
                return value + self.dice.choice((-2, -1, 1, 3))
            case str():
                known = (c.arguments for calls in self.pool.values() for c in calls[:3])
                others = [one for given in known for one in given.values() if one != value]
                texts = [one for one in others if isinstance(one, str)]
                return self.dice.choice([f"{value}x", value[:-1], *texts[:20]])
            case list():
                return value[1:] if value else ["x"]
            case _:
                return {**value, "x": 1}


def _turns(task: Task, turns: Turns) -> Iterator[tuple[int]]:
    yield from ((turn,) for turn in range(len(turns)))


def _calls(task: Task, turns: Turns) -> Iterator[tuple[int, int]]:
    yield from ((turn, at) for turn, calls in enumerate(turns) for at in range(len(calls)))


def _neighbours(task: Task, turns: Turns) -> Iterator[tuple[int, int]]:
    yield from ((turn, at) for turn, at in _calls(task, turns) if at + 1 < len(turns[turn]))


def _calls_with_arguments(task: Task, turns: Turns) -> Iterator[tuple[int, int]]:
    yield from ((turn, at) for turn, at in _calls(task, turns) if turns[turn][at].arguments)


def _named(task: Task, turns: Turns) -> Iterator[tuple[int, int, str]]:
    for turn, at in _calls(task, turns):
        yield from ((turn, at, name) for name in turns[turn][at].arguments)


def _late_turns(task: Task, turns: Turns) -> Iterator[tuple[int]]:
    yield from ((turn,) for turn in range(1, len(turns)) if turns[turn])


def _before_offer(task: Task, turns: Turns) -> Iterator[tuple[int, GoldCall]]:
    for turn, user in enumerate(task.turns):
        for call in (call for later in turns[turn:] for call in later):
            if turn and call.name in user.offers:
                yield turn, call


def _drop(by: Altering, task: Task, turns: Any, turn: int, at: int) -> None:
    del turns[turn][at]


def _swap(by: Altering, task: Task, turns: Any, turn: int, at: int) -> None:
    calls = turns[turn]
    calls[at], calls[at + 1] = calls[at + 1], calls[at]


def _given(turns: Any, turn: int, at: int, arguments: Mapping[str, Any]) -> None:
    turns[turn][at] = replace(turns[turn][at], arguments=arguments)


def _wrong_argument(by: Altering, task: Task, turns: Any, turn: int, at: int, name: str) -> None:
    before = turns[turn][at].arguments
    _given(turns, turn, at, {**before, name: by.another(before[name])})


def _wrong_type(by: Altering, task: Task, turns: Any, turn: int, at: int, name: str) -> None:
    before = turns[turn][at].arguments
    value = before[name]
    changed = [value] if isinstance(value, str) else json.dumps(value)
    _given(turns, turn, at, {**before, name: changed})


def _missing_argument(by: Altering, task: Task, turns: Any, turn: int, at: int) -> None:
    before = turns[turn][at].arguments
    left_out = by.dice.choice(sorted(before))
    _given(turns, turn, at, {name: one for name, one in before.items() if name != left_out})


def _extra_call(by: Altering, task: Task, turns: Any, turn: int) -> bool:
    offered = [name for one in task.turns[: turn + 1] for name in one.offers if name in by.pool]
    if offered:
        call = by.dice.choice(by.pool[by.dice.choice(offered)])
        turns[turn].insert(by.dice.randint(0, len(turns[turn])), call)
    return bool(offered)


def _repeat(by: Altering, task: Task, turns: Any, turn: int, at: int) -> None:
    turns[turn].insert(at, turns[turn][at])


def _early(by: Altering, task: Task, turns: Any, turn: int) -> None:
    turns[turn - 1].append(turns[turn].pop())


def _held_out(by: Altering, task: Task, turns: Any, turn: int, call: GoldCall) -> None:
    turns[turn - 1].append(call)


KINDS: Mapping[str, tuple[Callable[[Task, Turns], Iterator[Any]], Callable[..., bool | None]]] = {
    "drop": (_calls, _drop),
    "swap": (_neighbours, _swap),
    "wrong argument": (_named, _wrong_argument),
    "extra call": (_turns, _extra_call),
    "repeat": (_calls, _repeat),
    "early": (_late_turns, _early),
    "missing argument": (_calls_with_arguments, _missing_argument),
    "wrong type": (_named, _wrong_type),
    "held-out call": (_before_offer, _held_out),
}
"""By kind where the gold can be altered, and how; False where it cannot be after all."""
