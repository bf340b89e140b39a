"""How much of what real tools demand can be learned from their refusals (docs/proposers.md).

    python tests/benchmarks/evidence.py FOLDER [--failures 1 2 3 5] [--limit N]

FOLDER holds BFCL as ``tools.jsonl.gz`` and ``queries.jsonl.gz``. Each tool that demands something of
a parameter loses the statement: enums, bounds, formats, and the text of a parameter that states a range
or the form of a date. It goes on enforcing all of it, is called wrongly ``k`` times for each demand, once
an episode, and refuses in the words of five validators; half of the questions' gold calls are made too,
and accepted. No model takes part. Counted is what ``EvidenceProposer`` learns: exact, narrower or wider
than the demand, or nothing; *stray* rules about other parameters; and *rejected* gold values.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import arguments, report
from hidden_demands import Demand, demands_of_part, form, in_words, members

from agentkit import Episode, Library, ToolDefinition
from agentkit.episodes import Turn
from agentkit.evolution.proposal import Observations
from agentkit.evolution.proposers.evidence import EvidenceProposer
from agentkit.evolution.proposers.observed import EvidenceConfig
from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult
from agentkit.tools.rules import Between, Form, OneOf, Rule
from agentkit.tools.rules.checking import holds
from agentkit.tools.schema import copied

Arguments = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class HiddenTool:
    """A tool that has lost what it demands, what it goes on enforcing, and arguments of gold calls."""

    definition: ToolDefinition
    demands: tuple[Demand, ...]
    gold: tuple[Arguments, ...] = ()


# --- refusals, in the words of validators in the wild -----------------------------------------


def is_low(demand: Between, value: Any) -> bool:
    """Whether a value is below the range; else it is above."""
    return demand.minimum is not None and bool(value < demand.minimum)


def jsonschema(demand: Demand, value: Any, name: str) -> str:
    """As jsonschema words it."""
    match demand:
        case OneOf():
            return f"{value!r} is not one of {list(demand.values)!r}"
        case Between() if is_low(demand, value):
            return f"{value} is less than the minimum of {demand.minimum}"
        case Between():
            return f"{value} is greater than the maximum of {demand.maximum}"
        case Form():
            breaks = (
                f"is not a '{demand.format}'"
                if demand.format
                else f"does not match '{demand.pattern}'"
            )
            return f"{value!r} {breaks}"


def pydantic(demand: Demand, value: Any, name: str) -> str:
    """As pydantic words it."""
    match demand:
        case OneOf():
            *first, last = [repr(v) for v in demand.values]
            said = f"Input should be {', '.join(first)}{' or ' if first else ''}{last}"
        case Between():
            low = is_low(demand, value)
            word, bound = ("greater", demand.minimum) if low else ("less", demand.maximum)
            said = f"Input should be {word} than or equal to {bound}"
        case Form():
            wanted = form(demand).replace("YYYY", "%Y").replace("MM", "%m").replace("DD", "%d")
            said = f"time data {value!r} does not match format '{wanted}'"
    tail = f"[type=error, input_value={value!r}, input_type={type(value).__name__}]"
    return f"1 validation error for call\n{name}\n  {said} {tail}"


def prose(demand: Demand, value: Any, name: str) -> str:
    """Another author."""
    match demand:
        case OneOf():
            return f"Invalid {name}: {value}. Allowed values: {members(demand, quote='')}."
        case Between():
            return f"Invalid {name}: {value}. Allowed is {demand.minimum} <= {name} <= {demand.maximum}."
        case Form():
            return f"Invalid {name}. Please use the format {form(demand)}."


def opaque(demand: Demand, value: Any, name: str) -> str:
    """A refusal that tells nothing."""
    return f"invalid value {value!r} for {name}"


STYLES: Mapping[str, Callable[[Demand, Any, str], str]] = {
    "by hand": in_words,
    "jsonschema": jsonschema,
    "pydantic": pydantic,
    "prose": prose,
    "opaque": opaque,
}


# --- hiding ------------------------------------------------------------------------------------


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a file."""
    with gzip.open(path, "rt", encoding="utf-8") as text:
        yield from map(json.loads, text)


def hidden_tools(folder: Path) -> Iterator[HiddenTool]:
    """The tools of BFCL that demand something, without saying so."""
    gold: dict[str, list[Arguments]] = defaultdict(list)
    for record in lines(folder / "queries.jsonl.gz"):
        for call in record["gold"] if record["gold_kind"] == "calls_allowed_values" else ():
            given = {n: next((v for v in a if v != ""), None) for n, a in call["allowed"].items()}
            gold[call["tool"]].append({n: v for n, v in given.items() if v is not None})
    for record in lines(folder / "tools.jsonl.gz"):
        if record.get("lang"):
            continue  # values are source text of another language
        name, summary = record["name"], record["description"]
        full = ToolDefinition.from_schema(name, summary, record["parameters"])
        parameters, texts = copied(full.signature.parameters), dict(full.description.parameters)
        calls = tuple(gold[record["id"]])
        demands = [
            one
            for one in demands_below(parameters, "", texts)
            if all(holds(one, value) for call in calls for value in values(call, one.parameter))
        ]
        for demand in demands:
            for keyword in ("enum", "format", "default"):
                part_of(parameters, demand.parameter).pop(keyword, None)
            texts.pop(demand.parameter.removesuffix("[]"), None)
        for key, named in parameters.get("properties", {}).items():
            named.update({"description": texts[key]} if key in texts else {})
        if demands:
            bare = ToolDefinition.from_schema(name, summary, parameters)
            yield HiddenTool(definition=bare, demands=tuple(demands), gold=calls)


def demands_below(part: Mapping[str, Any], path: str, texts: Mapping[str, str]) -> Iterator[Demand]:
    """What is demanded at every depth of a schema."""
    for name, inner in part.get("properties", {}).items():
        below = f"{path}.{name}" if path else name
        yield from demands_of_part(inner, below, texts.get(below, ""))
        yield from demands_below(inner, below, texts)
        if isinstance(inner.get("items"), dict):
            yield from demands_of_part(inner["items"], f"{below}[]", "")
            yield from demands_below(inner["items"], f"{below}[]", texts)


def part_of(part: Any, path: str) -> Any:
    """The schema at a path such as ``stops[].day``."""
    for step in path.split("."):
        part = part["properties"][step.rstrip("[]")]
        for _ in range(step.count("[]")):
            part = part["items"]
    return part


def values(given: Any, path: str) -> Iterator[Any]:
    """The values at a path."""
    step, _, rest = path.partition(".")
    name = step.rstrip("[]")
    if not isinstance(given, Mapping) or name not in given:
        return
    found = [given[name]]
    for _ in range(step.count("[]")):
        found = [item for value in found if isinstance(value, list) for item in value]
    for value in found:
        yield from values(value, rest) if rest else [value]


# --- calling -----------------------------------------------------------------------------------


def wrong_values(demand: Demand, kind: str) -> list[Any]:
    """Values of the right type that break a demand."""
    pool: list[Any]
    match demand:
        case OneOf() if kind == "string":
            pool = ["standard", "any", "unknown", "default", "other", "none of these"]
        case OneOf():
            pool = [True, False] if kind == "boolean" else [7, 31, 113, 1009, 4, 50021]
        case Between():
            low, high = demand.minimum or 0, demand.maximum or 0
            pool = [high + 1, low - 1, high + 10, low - 5, high * 2 + 3, low - 100]
        case Form():
            pool = ["tomorrow", "31 May 2026", "2026/05/31", "05-2026", "next week", "20260531"]
    return [value for value in pool if not holds(demand, value)]


def valid(part: Mapping[str, Any], path: str, chosen: Mapping[str, Any]) -> Any:
    """A value that a schema allows, with those ``chosen`` in their places."""
    if path in chosen:
        return chosen[path]
    kind = part.get("type")
    if isinstance(part.get("enum"), list):
        return part["enum"][0]
    if kind == "object":
        below = part.get("properties", {}).items()
        return {n: valid(one, f"{path}.{n}" if path else n, chosen) for n, one in below}
    if kind == "array":
        return [valid(part.get("items", {}), f"{path}[]", chosen)]
    return {"integer": 3, "number": 2.5, "boolean": True, "null": None}.get(str(kind), "some text")


def met(demand: Demand) -> Any:
    """A value that meets a demand."""
    match demand:
        case OneOf():
            return demand.values[0]
        case Between():
            return demand.minimum
        case Form():
            return demand.example or "2026-05-31"


def episodes_of(hidden: HiddenTool, k: int, style: str) -> Iterator[Episode]:
    """``k`` refused calls for each demand, and half of the gold calls."""
    parameters = {**hidden.definition.signature.parameters, "type": "object"}
    right = {demand.parameter: met(demand) for demand in hidden.demands}
    for demand in hidden.demands:
        path = demand.parameter
        kind = part_of(parameters, path).get("type", "string")
        for at, value in enumerate(wrong_values(demand, kind)[:k]):
            said = STYLES[style](demand, value, path.split(".")[-1].rstrip("[]"))
            given = valid(parameters, "", right | {path: value})
            failure = ToolFailure(kind="retry_requested", rule=said[:500])
            yield episode(f"{path}-{at}", hidden.definition.name, given, failure)
    for at, given in enumerate(hidden.gold[::2]):
        yield episode(f"gold-{at}", hidden.definition.name, given, None)


def episode(number: str, name: str, given: Arguments, failure: ToolFailure | None) -> Episode:
    """An episode of one call."""
    call = ToolCall(call_id="1", name=name, arguments=given)
    status = "ok" if failure is None else "failed"
    result = ToolResult(call_id="1", name=name, status=status, failure=failure)
    turn = Turn(message=AssistantMessage(tool_calls=(call,)), results=(result,))
    return Episode(episode_id=number, request="", turns=(turn,))


# --- judging -----------------------------------------------------------------------------------


def outcome(demand: Demand, rules: Sequence[Rule]) -> str:
    """How a demand came back."""
    for rule in rules:
        match demand, rule:
            case ((OneOf() | Between() | Form()), (OneOf() | Between() | Form())) if (
                rule.kind != demand.kind or rule.parameter != demand.parameter
            ):
                continue
            case OneOf(), OneOf():
                wanted, learned = set(map(repr, demand.values)), set(map(repr, rule.values))
                return "exact" if wanted == learned else "wider" if learned > wanted else "narrower"
            case Between(), Between():
                ends = ((demand.minimum, rule.minimum), (demand.maximum, rule.maximum))
                if all(wanted == learned for wanted, learned in ends):
                    return "exact"
                fits = all(learned in (wanted, None) for wanted, learned in ends)
                return "wider" if fits else "narrower"
            case Form(), Form():
                same = (demand.format, demand.pattern) == (rule.format, rule.pattern)
                return "exact" if same else "narrower"
    return "none"


def measured(tools: Sequence[HiddenTool], k: int, style: str) -> Iterator[dict[str, Any]]:
    """A row for each kind of demand, after ``k`` refusals in one style."""
    config = EvidenceConfig() if k > 1 else EvidenceConfig(min_failures=1, min_episodes=1)
    outcomes: Counter[tuple[str, str]] = Counter()
    for hidden in tools:
        seen = Observations(
            library=Library([hidden.definition]), episodes=tuple(episodes_of(hidden, k, style))
        )
        found = asyncio.run(EvidenceProposer(config).propose(seen))
        rules = [rule for one in found for rule in one.candidate.specification.rules]
        demanded = {demand.parameter for demand in hidden.demands}
        for demand in hidden.demands:
            outcomes[demand.kind, outcome(demand, rules)] += 1
        for rule in (one for one in rules if isinstance(one, OneOf | Between | Form)):
            gold = [value for given in hidden.gold for value in values(given, rule.parameter)]
            outcomes[rule.kind, "stray"] += rule.parameter not in demanded
            outcomes[rule.kind, "gold"] += len(gold)
            outcomes[rule.kind, "rejected"] += sum(not holds(rule, value) for value in gold)
    for kind in ("one_of", "between", "form"):
        names = ("exact", "narrower", "wider", "none", "stray", "gold", "rejected")
        yield {
            "refusals": k,
            "style": style,
            "kind": kind,
            **{one: outcomes[kind, one] for one in names},
        }


if __name__ == "__main__":
    parser = arguments(__doc__, rounds=None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--failures", type=int, nargs="+", default=[1, 2, 3, 5])
    parser.add_argument("--limit", type=int, help="only the first so many tools")
    options = parser.parse_args()
    chosen = list(hidden_tools(options.folder))[: options.limit]
    kinds = Counter(demand.kind for hidden in chosen for demand in hidden.demands)
    print(f"{len(chosen)} tools, {sum(kinds.values())} hidden demands: {dict(kinds)}\n")
    rows = [row for k in options.failures for style in STYLES for row in measured(chosen, k, style)]
    report(rows, options)
