"""How much of what real tools demand can be learned from their refusals, and how exactly.

    python tests/benchmarks/bench_evidence.py FOLDER [--json FILE]

FOLDER holds BFCL as ``tools.jsonl.gz`` and ``queries.jsonl.gz`` (questions with allowed values).
Each tool that demands something of a parameter loses the statement: enums, bounds and formats of
its schema are taken out, and so is the text of a parameter that states a range or the form of a
date in words. The tool goes on enforcing all of it. It is then called wrongly ``k`` times for each
demand, once an episode, and refuses in one of several styles; half of the questions' gold calls are
made too, and accepted. No model takes part. Counted is what ``EvidenceProposer`` learns:

* exact, narrower, wider: against the demand that was hidden; none: nothing was learned;
* stray: rules about parameters that had no hidden demand;
* rejected gold: allowed values of all questions, the other half included, that a learned rule
  refuses.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agentkit import Episode, Library, ToolDefinition
from agentkit.episodes import Turn
from agentkit.evolution.proposer import Observations
from agentkit.evolution.proposers.evidence import EvidenceProposer
from agentkit.evolution.proposers.observed import EvidenceConfig
from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult
from agentkit.tools.error_messages import value_text
from agentkit.tools.rules import Between, Form, OneOf, Rule
from agentkit.tools.rules.checking import holds
from agentkit.tools.schema import copied
from agentkit.tools.schema_validator import fits

FAILURES = (1, 2, 3, 5)
Outcome: TypeAlias = Literal["exact", "narrower", "wider", "none"]
Demand: TypeAlias = OneOf | Between | Form
Refusal: TypeAlias = Callable[[Demand, Any, str], ToolFailure]

RANGE = re.compile(
    r"(?:between|from|range[sd]?(?: is| from)?)\s+(-?\d+(?:\.\d+)?)\s*(?:\([^)]*\)\s*)?(?:to|and|-)\s*"
    r"(-?\d+(?:\.\d+)?)(?![\d-])",
    re.IGNORECASE,
)
DAY = re.compile(r"'?(YYYY-MM-DD|MM/DD/YYYY|DD-MM-YYYY|DD/MM/YYYY)'?(?![A-Za-z' T]*HH)")
_DAYS: Mapping[str, tuple[str, str]] = {
    "MM/DD/YYYY": (r"^(0[1-9]|1[0-2])/(0[1-9]|[12]\d|3[01])/\d{4}$", "05/31/2026"),
    "DD-MM-YYYY": (r"^(0[1-9]|[12]\d|3[01])-(0[1-9]|1[0-2])-\d{4}$", "31-05-2026"),
    "DD/MM/YYYY": (r"^(0[1-9]|[12]\d|3[01])/(0[1-9]|1[0-2])/\d{4}$", "31/05/2026"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class HiddenTool:
    """A tool that has lost what it demands, and the gold values of its questions.

    Attributes:
        definition: Without the statements.
        demands: What it goes on enforcing.
        gold: Arguments of gold calls.
    """

    definition: ToolDefinition
    demands: tuple[Demand, ...]
    gold: tuple[dict[str, Any], ...] = ()


@dataclass(slots=True)
class Tally:
    """What came of the demands."""

    outcomes: Counter[tuple[str, str, Outcome]] = field(default_factory=Counter)
    stray: int = 0
    rejected: int = 0
    gold: int = 0


# --- refusals, in the words of validators in the wild -----------------------------------------


def _ours(demand: Demand, value: Any, name: str) -> ToolFailure:
    """Agentkit's validator, with the part of the schema that was broken."""
    match demand:
        case OneOf():
            excerpt: dict[str, Any] = {"enum": list(demand.values)}
            cause = "enum"
        case Between():
            low = demand.minimum is not None and value < demand.minimum
            cause = "minimum" if low else "maximum"
            excerpt = {"minimum": demand.minimum, "maximum": demand.maximum}
            excerpt = {key: bound for key, bound in excerpt.items() if bound is not None}
        case Form():
            cause = "format" if demand.format else "pattern"
            excerpt = {cause: demand.format or demand.pattern}
    rule = f"`{name}` is not right, got {value_text(value)}"
    return ToolFailure(
        kind="invalid_arguments",
        rule=rule,
        path=demand.parameter,
        schema_excerpt=excerpt,
        cause=cause,
    )


def _said(style: Callable[[Demand, Any, str], str]) -> Refusal:
    """A tool whose author raises ``ModelRetry`` or ``ValueError`` with such a text."""

    def refuse(demand: Demand, value: Any, name: str) -> ToolFailure:
        return ToolFailure(kind="retry_requested", rule=style(demand, value, name)[:500])

    return refuse


def _members(demand: OneOf, *, quote: str = "'", joint: str = ", ") -> str:
    shown = [f"{quote}{v}{quote}" if isinstance(v, str) else str(v) for v in demand.values]
    return joint.join(shown)


def _bounds(demand: Between) -> str:
    return f"between {demand.minimum} and {demand.maximum}"


def _form(demand: Form) -> str:
    return "YYYY-MM-DD" if demand.format == "date" else demand.words


def in_words(demand: Demand, value: Any, name: str) -> str:
    """How an author of a tool refuses a value by hand."""
    match demand:
        case OneOf():
            return f"{name} must be one of {_members(demand)}, got {value!r}"
        case Between():
            return f"{name} must be {_bounds(demand)}, got {value}"
        case Form():
            return f"{name} must be given as {_form(demand)}, got {value!r}"


def _jsonschema(demand: Demand, value: Any, name: str) -> str:
    match demand:
        case OneOf():
            return f"{value!r} is not one of {list(demand.values)!r}"
        case Between():
            if demand.minimum is not None and value < demand.minimum:
                return f"{value} is less than the minimum of {demand.minimum}"
            return f"{value} is greater than the maximum of {demand.maximum}"
        case Form():
            if demand.format:
                return f"{value!r} is not a '{demand.format}'"
            return f"{value!r} does not match '{demand.pattern}'"


def _pydantic(demand: Demand, value: Any, name: str) -> str:
    head = f"1 validation error for call\n{name}\n  "
    tail = f" [type=error, input_value={value!r}, input_type={type(value).__name__}]"
    match demand:
        case OneOf():
            *first, last = [repr(v) for v in demand.values]
            said = (
                f"Input should be {', '.join(first)} or {last}"
                if first
                else f"Input should be {last}"
            )
        case Between():
            is_low = demand.minimum is not None and value < demand.minimum
            word, bound = ("greater", demand.minimum) if is_low else ("less", demand.maximum)
            said = f"Input should be {word} than or equal to {bound}"
        case Form():
            said = f"time data {value!r} does not match format '{_strftime(demand)}'"
    return f"{head}{said}{tail}"


def _strftime(demand: Form) -> str:
    return _form(demand).replace("YYYY", "%Y").replace("MM", "%m").replace("DD", "%d")


def _prose(demand: Demand, value: Any, name: str) -> str:
    match demand:
        case OneOf():
            return f"Invalid {name}: {value}. Allowed values: {_members(demand, quote='')}."
        case Between():
            return f"Invalid {name}: {value}. Allowed is {demand.minimum} <= {name} <= {demand.maximum}."
        case Form():
            return f"Invalid {name}. Please use the format {_form(demand)}."


def _opaque(demand: Demand, value: Any, name: str) -> str:
    return f"invalid value {value!r} for {name}"


STYLES: Mapping[str, Refusal] = {
    "schema": _ours,
    "by hand": _said(in_words),
    "jsonschema": _said(_jsonschema),
    "pydantic": _said(_pydantic),
    "prose": _said(_prose),
    "opaque": _said(_opaque),
}


# --- hiding ------------------------------------------------------------------------------------


def hidden_tools(folder: Path) -> Iterator[HiddenTool]:
    """The tools of BFCL that demand something, without saying so."""
    gold = _gold(folder / "queries.jsonl.gz")
    for record in _lines(folder / "tools.jsonl.gz"):
        if record.get("lang"):
            continue  # values are source text of another language
        full = ToolDefinition.from_schema(
            record["name"], record["description"], record["parameters"]
        )
        parameters = copied(full.signature.parameters)
        texts = dict(full.description.parameters)
        demands = list(_demands(parameters, "", texts))
        calls = tuple(gold.get(record["id"], ()))
        demands = [one for one in demands if _keeps_gold(one, calls)]
        if not demands:
            continue
        for demand in demands:
            _strip(parameters, demand, texts)
        description = {**parameters, "properties": _with_texts(parameters, texts)}
        hidden = ToolDefinition.from_schema(record["name"], record["description"], description)
        yield HiddenTool(definition=hidden, demands=tuple(demands), gold=calls)


def _demands(schema: Mapping[str, Any], path: str, texts: Mapping[str, str]) -> Iterator[Demand]:
    for name, part in schema.get("properties", {}).items():
        below = f"{path}.{name}" if path else name
        yield from demands_of_part(part, below, texts.get(below, ""))
        yield from _demands(part, below, texts)
        items = part.get("items")
        if isinstance(items, dict):
            yield from demands_of_part(items, f"{below}[]", "")
            yield from _demands(items, f"{below}[]", texts)


def demands_of_part(part: Mapping[str, Any], path: str, text: str) -> Iterator[Demand]:
    """What a parameter's schema and text demand of it."""
    kind = part.get("type")
    if isinstance(part.get("enum"), list):
        bare = {keyword: value for keyword, value in part.items() if keyword != "enum"}
        # "True" for a boolean, or a text for a list: a demand that no call can meet
        if len(part["enum"]) > 1 and all(fits(value, bare) is True for value in part["enum"]):
            yield OneOf(parameter=path, values=tuple(part["enum"]))
    elif part.get("format") == "date":
        yield Form(parameter=path, format="date")
    elif kind in {"integer", "number"} and (found := RANGE.search(text)):
        low, high = float(found[1]), float(found[2])
        if low < high:
            whole = kind == "integer"
            bounds = [int(b) if whole or b.is_integer() else b for b in (low, high)]
            yield Between(parameter=path, minimum=bounds[0], maximum=bounds[1])
    elif kind == "string" and (day := DAY.search(text)):
        named = day[1] == "YYYY-MM-DD"
        pattern, example = ("", "") if named else _DAYS[day[1]]
        yield Form(
            parameter=path,
            format="date" if named else "",
            pattern=pattern,
            words="" if named else day[1],
            example=example,
        )


def _strip(schema: dict[str, Any], demand: Demand, texts: dict[str, str]) -> None:
    part = _part(schema, demand.parameter)
    for keyword in ("enum", "format", "default"):
        part.pop(keyword, None)
    texts.pop(demand.parameter.removesuffix("[]"), None)


def _part(schema: dict[str, Any], path: str) -> dict[str, Any]:
    part = schema
    for step in path.split("."):
        part = part["properties"][step.rstrip("[]")]
        for _ in range(step.count("[]")):
            part = part["items"]
    return part


def _with_texts(schema: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: {**part, **({"description": texts[name]} if name in texts else {})}
        for name, part in schema.get("properties", {}).items()
    }


def _gold(path: Path) -> Mapping[str, list[dict[str, Any]]]:
    """Arguments of gold calls by tool: for each the first allowed value that is one."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in _lines(path):
        if record["gold_kind"] != "calls_allowed_values":
            continue
        for call in record["gold"]:
            given = {n: next((v for v in a if v != ""), None) for n, a in call["allowed"].items()}
            found[call["tool"]].append({n: v for n, v in given.items() if v is not None})
    return found


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _keeps_gold(demand: Demand, calls: Sequence[Mapping[str, Any]]) -> bool:
    return all(holds(demand, v) for call in calls for v in _values(call, demand.parameter))


def _values(arguments: Any, path: str) -> Iterator[Any]:
    step, _, rest = path.partition(".")
    name = step.rstrip("[]")
    if not isinstance(arguments, Mapping) or name not in arguments:
        return
    values = [arguments[name]]
    for _ in range(step.count("[]")):
        values = [item for value in values if isinstance(value, list) for item in value]
    for value in values:
        yield from _values(value, rest) if rest else [value]


# --- calling -----------------------------------------------------------------------------------


def wrong_values(demand: Demand, part: Mapping[str, Any]) -> list[Any]:
    """Values of the right type that break a demand."""
    match demand:
        case OneOf():
            texts = ["standard", "any", "unknown", "default", "other", "none of these"]
            numbers: list[Any] = [7, 31, 113, 1009, 4, 50021]
            is_text = part.get("type", "string") == "string"
            pool = texts if is_text else numbers
            if part.get("type") == "boolean":
                pool = [True, False]
        case Between():
            low, high = demand.minimum or 0, demand.maximum or 0
            pool = [high + 1, low - 1, high + 10, low - 5, high * 2 + 3, low - 100]
        case Form():
            pool = ["tomorrow", "31 May 2026", "2026/05/31", "05-2026", "next week", "20260531"]
    return [value for value in pool if not holds(demand, value)]


def valid(part: Mapping[str, Any], path: str, demands: Mapping[str, Demand]) -> Any:
    """A value that a schema and the demands below it allow."""
    demand = demands.get(path)
    if demand is not None:
        return _met(demand)
    kind = part.get("type")
    if isinstance(part.get("enum"), list):
        return part["enum"][0]
    if kind == "object":
        named = part.get("properties", {}).items()
        return {
            name: valid(below, f"{path}.{name}" if path else name, demands) for name, below in named
        }
    if kind == "array":
        return [valid(part.get("items", {}), f"{path}[]", demands)]
    return {"integer": 3, "number": 2.5, "boolean": True, "null": None}.get(str(kind), "some text")


def _met(demand: Demand) -> Any:
    match demand:
        case OneOf():
            return demand.values[0]
        case Between():
            return demand.minimum
        case Form():
            return demand.example or "2026-05-31"


def episodes_of(hidden: HiddenTool, k: int, style: str) -> Iterator[Episode]:
    """``k`` refused calls for each demand, and half of the gold calls."""
    demands = {demand.parameter: demand for demand in hidden.demands}
    parameters = hidden.definition.signature.parameters
    name = hidden.definition.name
    for demand in hidden.demands:
        wrong = wrong_values(demand, _part(copied(parameters), demand.parameter))
        for at, value in enumerate(wrong[:k]):
            arguments = valid({**parameters, "type": "object"}, "", demands)
            _put(arguments, demand.parameter, value)
            last = demand.parameter.split(".")[-1].rstrip("[]")
            failure = STYLES[style](demand, value, last)
            yield _episode(f"{demand.parameter}-{at}", name, arguments, failure)
    for at, arguments in enumerate(hidden.gold[::2]):
        yield _episode(f"gold-{at}", name, arguments, None)


def _put(arguments: dict[str, Any], path: str, value: Any) -> None:
    *steps, last = path.split(".")
    inside: Any = arguments
    for step in steps:
        inside = inside[step.rstrip("[]")]
        for _ in range(step.count("[]")):
            inside = inside[0]
    name, depth = last.rstrip("[]"), last.count("[]")
    for _ in range(depth):
        value = [value]
    inside[name] = value


def _episode(
    episode_id: str, name: str, arguments: Mapping[str, Any], failure: ToolFailure | None
) -> Episode:
    call = ToolCall(call_id="1", name=name, arguments=arguments)
    status = "ok" if failure is None else "failed"
    result = ToolResult(call_id="1", name=name, status=status, failure=failure)
    turn = Turn(message=AssistantMessage(tool_calls=(call,)), results=(result,))
    return Episode(episode_id=episode_id, request="", turns=(turn,))


# --- judging -----------------------------------------------------------------------------------


def outcome(demand: Demand, rules: Sequence[Rule]) -> Outcome:
    """How a demand came back."""
    same = [
        rule
        for rule in rules
        if isinstance(rule, OneOf | Between | Form)
        and rule.kind == demand.kind
        and rule.parameter == demand.parameter
    ]
    if not same:
        return "none"
    learned = same[0]
    if isinstance(demand, OneOf) and isinstance(learned, OneOf):
        return _compared(set(map(repr, demand.values)), set(map(repr, learned.values)))
    if isinstance(demand, Between) and isinstance(learned, Between):
        low = demand.minimum == learned.minimum, learned.minimum is None
        high = demand.maximum == learned.maximum, learned.maximum is None
        if all(part[0] for part in (low, high)):
            return "exact"
        return "wider" if all(any(part) for part in (low, high)) else "narrower"
    is_same = isinstance(demand, Form) and isinstance(learned, Form)
    return "exact" if is_same and _form_key(demand) == _form_key(learned) else "narrower"  # type: ignore[arg-type]


def _form_key(form: Form) -> tuple[str, str]:
    return form.format, form.pattern


def _compared(demanded: set[str], learned: set[str]) -> Outcome:
    if demanded == learned:
        return "exact"
    return "wider" if learned > demanded else "narrower"


def tried(hidden: HiddenTool, k: int, style: str, knobs: EvidenceConfig, tally: Tally) -> None:
    """Learn one tool from its refusals, and count."""
    seen = Observations(
        library=Library([hidden.definition]), episodes=tuple(episodes_of(hidden, k, style))
    )
    found = asyncio.run(EvidenceProposer(knobs).propose(seen))
    rules = [rule for one in found for rule in one.candidate.specification.rules]
    for demand in hidden.demands:
        tally.outcomes[style, demand.kind, outcome(demand, rules)] += 1
    demanded = {demand.parameter for demand in hidden.demands}
    tally.stray += sum(getattr(rule, "parameter", "") not in demanded for rule in rules)
    for arguments in hidden.gold:
        for rule in rules:
            if isinstance(rule, OneOf | Between | Form):
                values = list(_values(arguments, rule.parameter))
                tally.gold += len(values)
                tally.rejected += sum(not holds(rule, value) for value in values)


def main() -> None:
    """Print one table, and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    tools = list(hidden_tools(options.folder))
    kinds = Counter(demand.kind for hidden in tools for demand in hidden.demands)
    print(f"{len(tools)} tools, {sum(kinds.values())} hidden demands: {dict(kinds)}")
    rows = [row for k in FAILURES for row in measured(tools, k)]
    for row in rows:
        shares = " ".join(
            f"{name} {row[name]:5d}" for name in ("exact", "narrower", "wider", "none")
        )
        print(f"k={row['k']} {row['style']:11s} {row['kind']:8s} {shares}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def measured(tools: Sequence[HiddenTool], k: int) -> Iterator[dict[str, Any]]:
    """The rows for one number of failures, and what went wrong beside."""
    knobs = EvidenceConfig() if k > 1 else EvidenceConfig(min_failures=1, min_episodes=1)
    tally = Tally()
    started = time.process_time()
    for style in STYLES:
        for hidden in tools:
            tried(hidden, k, style, knobs, tally)
    seconds = time.process_time() - started
    per_tool = 1000 * seconds / (len(tools) * len(STYLES))
    print(
        f"k={k}: stray rules {tally.stray}, gold values {tally.gold}, rejected {tally.rejected}, "
        f"{per_tool:.1f} ms a tool"
    )
    for style in STYLES:
        for kind in ("one_of", "between", "form"):
            counts = {
                name: tally.outcomes[style, kind, name]
                for name in ("exact", "narrower", "wider", "none")
            }  # type: ignore[index]
            yield {"k": k, "style": style, "kind": kind, **counts}


if __name__ == "__main__":
    main()
