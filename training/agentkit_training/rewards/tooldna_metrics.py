"""ToolDNA's seven metrics of a tool-calling answer, with its gates against inflated scores.

Source: ToolDNA, appendix C.3.1. Each metric is 1, 0.5 or 0:

=============  ===================================================================================
Format         1 if the output has all required tags; a fact that the caller knows.
ToolParsed     1 if the tool calls could be parsed; a fact, and no call may be malformed.
ToolName       1 for the same tools as the gold calls, .5 for some of them, else 0.
ParamName      1 for the same parameters, .5 for more than those, 0 when one is missing.
ParamValue     1 for the same values, .5 for free texts that agree and for supersets, else 0.
PerfectMatch   1 if the calls are the gold calls.
Resolution     1 if Format = ToolParsed = 1 and ToolName, ParamName, ParamValue are all positive.
=============  ===================================================================================

The gates ("Anti-Inflation Rules"): a required parameter that is missing gives 0, a valid superset
gives .5, structured fields are compared exactly, and only free text may agree in part
(``field_kind`` says what is free text, ``texts_agree`` what agrees).

Where the paper is silent or says two things, and what holds here:

* **One wrong value of several.** "Partially matched parameter values" would make it .5. In the
  paper's own case 2 (table 6) two of three values are right and ParamValue is 0.0. So the gates
  decide: one structured value that is wrong gives 0. Case 1 (table 5), a free text that agrees,
  gives .5. Both total rewards that the tables print, .625 and .5, are R2's; R1 would be 0 and 0, R3
  .5 and 0, although the text calls R3 the best design.
* **Missing "required" parameters.** Required is what the gold call states ("any required parameter
  present in the ground truth"), except where leaving it out means the same, because the gold value
  is the parameter's default ("omitted optional parameters (where defaults suffice)").
* **Supersets.** The rule speaks of parameters and shows lists (``['price', 'mileage']``); it is
  applied to both, and to whole calls. A superset is valid when what is added is declared by the
  tool and fits its schema, and for an added call when its tool does not declare that it writes or
  destroys: the paper wants "extra safe information". What is added beyond that was hallucinated: 0.
  A superset counts .5 in ParamName and in ParamValue.
* **Lists** follow subset and superset logic where they select something: items are strings, or
  ``uniqueItems`` is declared. In another order they are the same selection but not the same
  argument: .5. Other lists, such as coordinates, are compared exactly.
* **Objects** are graded like the arguments of a call, field by field.
* **Several calls** are paired one to one with gold calls of the same tool, so that first the values
  and then the names agree best (``optimal_assignment``); the worst pair decides. A gold call
  without a partner misses all its parameters: 0.
* **Parameters of a wrong tool** give nothing. The authors' implementation must do otherwise: their
  tables have ParamName above ToolName (.5498 and .5095 in table 1). PerfectMatch and
  Resolution are the same either way; R2 can only be lower here.
* **No gold call** (abstention): no call gives 1 throughout, any call 0 in the five metrics that
  compare calls.
* **What could not be parsed** can not be compared: with ToolParsed = 0 all but Format is 0.
* **PerfectMatch** does not depend on Format, which the rewards subtract already. Resolution, by its
  formula, is 1 for a perfect match too, though the text says that it focuses on non-exact ones.
* **Equality** of values is canonical (``agentkit.metrics.calls``): ``"3"`` is 3 for an integer.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

from agentkit.messages import JsonObject
from agentkit.metrics.calls import remembered
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.schema import resolve_local
from agentkit.tools.schema_validator import fits
from agentkit_bench.comparable import (
    CallLike,
    ComparableCall,
    Definitions,
    by_name,
    comparable_calls,
    mark_of,
)
from agentkit_bench.type_evidence import type_of, type_of_value
from agentkit_training.toolace.overlap import optimal_assignment

FieldKind = Literal[
    "exact",  # right or wrong
    "selection",  # a list of what is chosen: a superset of the right choice is right in part
    "text",  # words: another wording is right in part
]

_FIXED = ("const", "contentEncoding", "contentMediaType", "enum", "format", "pattern")
"""Keywords after which a string is no longer free."""

_FREE_MEANINGS = frozenset({"address", "city", "colour", "country", "place", "region"})
"""Meanings that people word freely; all others (dates, ids, units, money, ...) are structured."""

_SURE = 0.75
"""How sure a guess of what a name means must be to take the field for structured."""

_MOST_CHARACTERS = 100
"""Longer texts are compared by their words alone: comparing characters takes cubic time at worst,
and spelling mistakes matter in short texts."""

_SAME_CHARACTERS = 0.8
_SAME_WORDS = 0.65  # the paper's "2023 used cars" and "used 2023 vehicles" share two thirds
_SHORTEST_PART = 3  # a letter or two begin too many words

_NOTATION = re.compile(r"[=<>*^{}\[\]|\\;+/()#]|\A[\W\d_]*\Z")
"""Signs of formulas, code and paths, or no letter: where one character changes everything."""

_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+")


def field_kind(name: str, schema: Any, *, description: str = "") -> FieldKind:
    """How values of a parameter are compared, by what its definition says.

    ``text``
        The declared type is string (or string or null), with no ``enum``, ``const``, ``format``,
        ``pattern`` or content encoding, and neither name nor description suggests something
        structured: a date, an id, an amount, an address on the web, a language, a currency, ...
    ``selection``
        A list whose items are strings, or that is declared ``uniqueItems``.
    ``exact``
        Everything else, undeclared types included.

    Args:
        name: The parameter.
        schema: Its schema.
        description: What its author says about it.

    Example:
        >>> field_kind("query", {"type": "string"}), field_kind("check_in_date", {"type": "string"})
        ('text', 'exact')
        >>> field_kind("fields", {"type": "array", "items": {"type": "string"}})
        'selection'
    """
    if not isinstance(schema, Mapping):
        return "exact"
    kind = _declared(schema)
    if kind == "array":
        items = schema.get("items")
        are_texts = isinstance(items, Mapping) and _declared(items) == "string"
        return "selection" if are_texts or schema.get("uniqueItems") is True else "exact"
    if kind != "string" or any(keyword in schema for keyword in _FIXED):
        return "exact"
    known = type_of(schema, name=name, description=description)
    sure = [guess.meaning for guess in known.meanings if guess.confidence >= _SURE]
    return "text" if _FREE_MEANINGS.issuperset(sure) else "exact"


def _declared(schema: JsonObject) -> Any:
    """The one declared type beside null; None where there are several or none."""
    alternatives = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(alternatives, list):
        parts = [part for part in alternatives if part != {"type": "null"}]
        plain = len(parts) == 1 and isinstance(parts[0], Mapping)
        return _declared(parts[0]) if plain and set(parts[0]) <= {"type", "items"} else None
    declared = schema.get("type")
    if isinstance(declared, list):
        rest = [kind for kind in declared if kind != "null"]
        return rest[0] if len(rest) == 1 else None
    return declared


def texts_agree(given: str, gold: str) -> bool:
    """Whether two free texts say about the same, though not in the same words.

    What is compared are words without case, width and punctuation. The texts agree when

    * the numbers in one are among the numbers in the other (``BMW X3`` is not ``BMW X5``), and
    * one is a run of words of the other, or its beginning (``Passat``, ``Passat380``), or they
      share two thirds of their words (Dice coefficient), or their characters agree to .8 (ratio
      of ``difflib``), which allows for spelling mistakes.

    Where the gold text is no prose but a date, an amount, an id, a path, a formula or code, only
    equal texts agree, whatever the parameter was taken for.

    On BFCL's free texts this takes 45% of the pairs of alternatives that its authors allow for one
    argument, and 3.4% of the pairs of gold values of different questions, most of which do say the
    same (``Boston``, ``Boston, MA``). RapidFuzz, MIT-licensed and the usual choice, finds 50% and
    4.1% with ``token_set_ratio`` at 80, and 21% and 2.0% with ``ratio`` at 80; for that the core
    does not need one more compiled dependency beside ``difflib`` of the standard library.

    Args:
        given: What was written.
        gold: What would have been right.

    Example:
        >>> texts_agree("Passat", "Passat380"), texts_agree("BMW X3", "BMW X5")
        (True, False)
        >>> texts_agree("2023 used cars", "used 2023 vehicles")
        True
        >>> texts_agree("2024-03-01", "2024-03-02")
        False
    """
    if given == gold:
        return True
    if _NOTATION.search(gold) or _NOTATION.search(given):
        return False
    one, other = _folded(given), _folded(gold)
    if not (one and other and _numbers_agree(one, other) and _words_agree(one, other)):
        return False
    return not _is_structured(gold)  # last, as it takes longest


def _is_structured(text: str) -> bool:
    return not _FREE_MEANINGS.issuperset(guess.meaning for guess in type_of_value(text).meanings)


def _folded(text: str) -> str:
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def _numbers_agree(one: str, other: str) -> bool:
    left, right = set(_NUMBER.findall(one)), set(_NUMBER.findall(other))
    return left <= right or right <= left


def _words_agree(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    if f" {shorter} " in f" {longer} ":
        return True
    if len(shorter) >= _SHORTEST_PART and longer.startswith(shorter):
        return True
    left, right = set(one.split()), set(other.split())
    if 2 * len(left & right) >= _SAME_WORDS * (len(left) + len(right)):
        return True
    if len(longer) > _MOST_CHARACTERS:
        return False
    return SequenceMatcher(None, one, other, autojunk=False).ratio() >= _SAME_CHARACTERS


Grade: TypeAlias = float
"""0, 0.5 or 1: wrong, right in part, right."""

WRONG: Grade = 0.0
PARTLY: Grade = 0.5
RIGHT: Grade = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolDnaMetrics:
    """The seven metrics of one answer (ToolDNA, appendix C.3.1).

    Attributes:
        format: Format.
        tool_parsed: ToolParsed.
        tool_name: ToolName.
        param_name: ParamName.
        param_value: ParamValue.
        perfect_match: PerfectMatch.
        resolution: Resolution.
    """

    format: Grade
    tool_parsed: Grade
    tool_name: Grade
    param_name: Grade
    param_value: Grade
    perfect_match: Grade
    resolution: Grade

    def to_json(self) -> dict[str, float]:
        """The metrics as numbers by name, as ``Verdict.metrics`` keeps them."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def tooldna_metrics(
    calls: Sequence[CallLike],
    gold: Sequence[CallLike],
    definitions: Definitions,
    *,
    format_ok: bool = True,
    parsed_ok: bool = True,
) -> ToolDnaMetrics:
    """The seven metrics of an answer; see the module's text for the rules.

    Args:
        calls: What was called. A ``ToolCall`` that is ``malformed`` was not parsed.
        gold: The gold calls; none when the right answer is no call.
        definitions: The tools that may be called.
        format_ok: Whether the output had the structure that was asked for.
        parsed_ok: Whether the calls could be read out of the output.

    Example:
        >>> from agentkit import ToolDefinition
        >>> from agentkit.messages import ToolCall
        >>> search = ToolDefinition.from_schema(
        ...     "search_used_cars",
        ...     "Search the inventory.",
        ...     {"type": "object", "properties": {"query": {"type": "string"}}},
        ... )
        >>> def search_for(query):
        ...     return [ToolCall(call_id="1", name=search.name, arguments={"query": query})]
        >>> found = tooldna_metrics(search_for("Passat"), search_for("Passat380"), [search])
        >>> found.param_name, found.param_value, found.perfect_match, found.resolution
        (1.0, 0.5, 0.0, 1.0)
    """
    known = by_name(definitions)
    made, wanted = comparable_calls(calls, known), comparable_calls(gold, known)
    is_parsed = parsed_ok and all(call.is_readable for call in made)
    tools, parameters = WRONG, CallGrade()
    if is_parsed:
        tools = _grade_tools(made, wanted)
        parameters = _grade_parameters(made, wanted)
    compared = (tools, parameters.names, parameters.values)
    return ToolDnaMetrics(
        format=_grade(format_ok),
        tool_parsed=_grade(is_parsed),
        tool_name=tools,
        param_name=parameters.names,
        param_value=parameters.values,
        perfect_match=_grade(min(compared) == RIGHT),
        resolution=_grade(format_ok and is_parsed and min(compared) > WRONG),
    )


def _grade(holds: bool) -> Grade:  # noqa: FBT001  # it turns a truth value into a number
    return RIGHT if holds else WRONG


def _grade_tools(made: Sequence[ComparableCall], wanted: Sequence[ComparableCall]) -> Grade:
    called, gold = [call.name for call in made], [call.name for call in wanted]
    if sorted(called) == sorted(gold):
        return RIGHT
    return WRONG if set(called).isdisjoint(gold) else PARTLY


def _grade_parameters(
    made: Sequence[ComparableCall],
    wanted: Sequence[ComparableCall],
) -> CallGrade:
    """ParamName and ParamValue of the best pairing."""
    if not wanted:
        return CallGrade() if made else CallGrade(names=RIGHT, values=RIGHT)
    if len(made) < len(wanted):
        return CallGrade()
    table = [[_grade_call(call, gold) for call in made] for gold in wanted]
    weights = _weights(len(made) + 1)
    pairs = optimal_assignment([[weights[grade] for grade in row] for row in table])
    found = [table[row][column] for row, column in pairs]
    paired = {column for _, column in pairs}
    added = [call for at, call in enumerate(made) if at not in paired]
    most = RIGHT if not added else PARTLY if all(map(_is_harmless, added)) else WRONG
    return CallGrade(
        names=min(most, *(one.names for one in found)),
        values=min(most, *(one.values for one in found)),
    )


@lru_cache(maxsize=256)
def _weights(base: int) -> Mapping[CallGrade, int]:
    """Numbers for the grades that add up to the order in which pairings are better.

    First counts how many pairs have values that are at least partly right, then how many are right,
    then the same for names. As the worst pair decides, no other pairing gives better grades.
    """
    grades = (WRONG, PARTLY, RIGHT)
    return {
        CallGrade(names, values): (
            (((values > WRONG) * base + (values == RIGHT)) * base + (names > WRONG)) * base
            + (names == RIGHT)
        )
        for names in grades
        for values in grades
    }


def _is_harmless(call: ComparableCall) -> bool:
    """Whether an added call is a valid one, of a tool that is not known to change things."""
    if call.definition is None:
        return False
    signature = call.definition.signature
    stated = {name: call.values[name] for name in call.given}
    may_harm = signature.effects.writes is True or signature.effects.destructive is True
    return not may_harm and fits(stated, signature.parameters) is not False


# --- one call beside one gold call ----------------------------------------------------------------


class CallGrade(NamedTuple):
    """How one call compares with one gold call.

    Attributes:
        names: ParamName of the pair.
        values: ParamValue of the pair, never above ``names``.
    """

    names: Grade = WRONG
    values: Grade = WRONG


def _grade_call(call: ComparableCall, gold: ComparableCall) -> CallGrade:
    """How right a call is beside a gold call."""
    if call.name != gold.name or not (call.is_readable and gold.is_readable):
        return CallGrade()
    if call.marks == gold.marks:
        return CallGrade(RIGHT, RIGHT)
    names = RIGHT if call.given == gold.given else _grade_names(call, gold)
    if names == WRONG:
        return CallGrade()
    differ = {name for name, _ in call.marks.items() ^ gold.marks.items()} & gold.given
    pairs = [((name,), call.values.get(name), gold.values[name]) for name in differ]
    # Unequal calls are never wholly right, also where only a default in a branch differs.
    return CallGrade(names, min(PARTLY, _worst(pairs, gold.definition)))


def _grade_names(call: ComparableCall, gold: ComparableCall) -> Grade:
    if any(name in gold.marks for name in gold.given - call.given):
        return WRONG
    added = {name: call.values[name] for name in call.given - gold.given if name in call.marks}
    if not added:
        return RIGHT
    schema = _root(call.definition)
    return PARTLY if _are_declared(added, schema, schema) else WRONG


def _are_declared(added: JsonObject, schema: JsonObject, root: JsonObject) -> bool:
    """Whether fields that nobody asked for exist, and hold what they may."""
    properties = schema.get("properties")
    declared = properties if isinstance(properties, Mapping) else {}
    others = schema.get("additionalProperties", False)
    return all(
        (part := declared.get(name, others)) is not False
        and fits(value, part, root=root) is not False
        for name, value in added.items()
    )


_Path: TypeAlias = tuple[str, ...]


class _Field(NamedTuple):
    kind: FieldKind
    schema: JsonObject


_UNKNOWN = _Field("exact", {})


@remembered(most=16_384)
def _field(definition: ToolDefinition, path: _Path) -> _Field:
    """The schema of a field, and how it is compared."""
    root = schema = definition.signature.parameters
    for name in path:
        properties = schema.get("properties")
        part = properties.get(name) if isinstance(properties, Mapping) else None
        reference = part.get("$ref") if isinstance(part, Mapping) else None
        part = resolve_local(root, reference) if isinstance(reference, str) else part
        if not isinstance(part, Mapping):
            return _UNKNOWN
        schema = part
    text = definition.description.parameters.get(".".join(path), "")
    return _Field(field_kind(path[-1], schema, description=text), schema)


def _worst(pairs: Iterable[tuple[_Path, Any, Any]], tool: ToolDefinition | None) -> Grade:
    """The lowest grade of fields that differ; texts, which take longest, only where it matters."""
    worst = RIGHT
    texts: list[tuple[str, str]] = []
    for path, value, gold in pairs:
        rule = _UNKNOWN if tool is None else _field(tool, path)
        if rule.kind == "text" and type(value) is str and type(gold) is str:
            texts.append((value, gold))
            worst = PARTLY
        elif type(gold) is dict and type(value) is dict:
            worst = min(worst, _grade_object(path, value, gold, tool))
        elif rule.kind == "selection" and _is_superset(value, gold):
            valid = fits(value, rule.schema, root=_root(tool)) is not False
            worst = PARTLY if valid else WRONG
        else:
            return WRONG
        if worst == WRONG:
            return WRONG
    return worst if all(texts_agree(value, gold) for value, gold in texts) else WRONG


def _is_superset(value: Any, gold: Any) -> bool:
    """Whether a list holds everything that another one holds, as often."""
    if type(value) is not list or type(gold) is not list or not gold:
        return False
    chosen, wanted = list(map(mark_of, value)), list(map(mark_of, gold))
    return set(wanted) <= set(chosen) and Counter(wanted) <= Counter(chosen)


def _root(tool: ToolDefinition | None) -> JsonObject:
    """The document that the schemas of a tool's fields point into."""
    return {} if tool is None else tool.signature.parameters


def _grade_object(
    path: _Path, value: JsonObject, gold: JsonObject, tool: ToolDefinition | None
) -> Grade:
    if not gold.keys() <= value.keys():
        return WRONG
    added = {name: item for name, item in value.items() if name not in gold}
    schema = {} if tool is None else _field(tool, path).schema
    if added and not _are_declared(added, schema, _root(tool)):
        return WRONG
    pairs = [
        ((*path, name), value[name], item)
        for name, item in gold.items()
        if mark_of(value[name]) != mark_of(item)
    ]
    return min(PARTLY, _worst(pairs, tool))
