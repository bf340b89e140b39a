"""The checks: whether a change keeps the contract, and whether its words agree with it.

Contract checks compare the candidate with the base; none reads the words. The others hold what new
sentences state against schema and rules: whoever must agree reads the rest. Their patterns stand in
``phrases/sentences.txt``. The tables at the end list all checks, in the order of the reasons.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, wraps
from itertools import islice
from typing import Any

from agentkit.composites import rule_problems
from agentkit.errors import DefinitionError
from agentkit.evolution.validation import lexical_checks as lexical
from agentkit.evolution.validation.approvals import DOUBTS, TRUSTED, ValidationPolicy
from agentkit.evolution.validation.report import (
    Check,
    FailedCheck,
    ProposedChange,
    Statement,
    ValidationReport,
    failed,
)
from agentkit.evolution.validation.texts import (
    ParameterFacts,
    folded,
    is_too_deep,
    mapping,
    matches,
    numbers_in,
    pattern,
    patterns,
    readings_of,
    rules_of,
    same,
    sections,
    sequence,
    shown_value,
    units,
)
from agentkit.library.library import Library
from agentkit.retrieval.words import terms
from agentkit.tools.canonical import is_json
from agentkit.tools.definition import Example, ToolDefinition, is_instructions
from agentkit.tools.rules import CallBefore, Takes
from agentkit.tools.schema_validator import fits
from agentkit.tools.validation import validate_arguments

# --- The contract: name, origin, parameters, result, effects, program, conditions ----------------


_NOTHING = object()
_LONGEST_PLACE = 300


def contract_kept(change: ProposedChange) -> Iterator[FailedCheck]:
    """Everything but texts, rules and worked calls, place by place; of instructions also these.

    A new program is a new composite and goes through InsertTool; a new condition is a rule.
    Declared effects stand whatever a text says.
    """
    for place, had, has in _differences(_contract(change.base), _contract(change.candidate)):
        was, would_be = ("nothing" if one is _NOTHING else shown_value(one) for one in (had, has))
        yield failed("contract_changed", field=place, before=was, after=would_be)


def _contract(tool: ToolDefinition) -> dict[str, Any]:
    signature, conditions, origin = tool.signature, tool.specification, tool.origin
    children = [[child.name, child.digest] for child in sequence(signature.children)]
    fixed = {"rules": rules_of(tool), "examples": tool.examples, "tags": tool.description.tags}
    return {
        **(fixed if is_instructions(tool.name) else {}),
        "name": tool.name,
        "origin": {name: getattr(origin, name) for name in origin.__dataclass_fields__},
        "signature": {
            "parameters": signature.parameters,
            "result": signature.result,
            "effects": signature.effects.to_json(),
            "children": children,
        },
        "specification": {"pre": conditions.pre, "post": conditions.post},
        "body": tool.body,
    }


def _differences(base: Any, candidate: Any) -> Iterator[tuple[str, Any, Any]]:
    """The places of records that differ, each with what was there and what would be."""
    waiting = [("", base, candidate)]
    while waiting:
        place, had, has = waiting.pop()
        if isinstance(had, Mapping) and isinstance(has, Mapping):
            for name in reversed(dict.fromkeys((*had, *has))):
                inside = (had.get(name, _NOTHING), has.get(name, _NOTHING))
                waiting.append((f"{place}.{name!s:.60}".strip(".")[-_LONGEST_PLACE:], *inside))
        elif not same(had, has):
            yield place, had, has


def something_changed(change: ProposedChange) -> Iterator[FailedCheck]:
    """A proposal that changes nothing."""
    try:
        is_same = change.base.digest == change.candidate.digest
    except (ValueError, TypeError, AttributeError, RecursionError):
        return  # it is no JSON data, and malformed
    if is_same:
        yield failed("no_change")


# --- Fields of the right types -------------------------------------------------------------------


def fields_well_formed(change: ProposedChange) -> Iterator[FailedCheck]:
    """Texts are texts, lists are lists, and examples are JSON.

    A definition that was read from foreign JSON may hold anything in its fields. Texts without a
    letter or a digit count as malformed too: white space, or the ``...`` that a prompt shows. So do
    texts that are emptied.
    """
    found = list(dict.fromkeys(_problems(change.candidate)))
    known = set(_problems(change.base)) if found else set()
    for field, problem in found:
        if (field, problem) not in known:
            yield failed("malformed", field=field, problem=problem)


def _problems(tool: ToolDefinition) -> Iterator[tuple[str, str]]:
    words: Any = tool.description
    conditions: Any = tool.specification
    texts = [("summary", words.summary), ("complexity", conditions.complexity)]
    texts = [(field, text) for field, text in texts if text != ""]
    lists = {"usage_rules": words.usage_rules, "tags": words.tags, "text": conditions.text}
    for field, values in lists.items():
        if not isinstance(values, tuple | list):
            yield field, f"it is {shown_value(values)}, not a list of texts"
        texts += [(f"{field}[{at}]", text) for at, text in enumerate(sequence(values))]
    if not isinstance(words.parameters, Mapping):
        yield "parameters", f"it is {shown_value(words.parameters)}, not a text for each parameter"
    for path, text in mapping(words.parameters).items():
        texts.append((f"parameters.{path!s:.60}", text if isinstance(path, str) else path))
    for field, text in texts:
        # "..." out of a prompt says nothing
        if not (isinstance(text, str) and any(map(str.isalnum, text))):
            yield field, f"it is {shown_value(text)}, not a text with words"
    yield from _malformed_examples(tool.examples)
    if is_too_deep([tool.signature.parameters, tool.signature.result, tool.body]):
        yield "signature", "it is nested too deeply"


def _malformed_examples(examples: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(examples, tuple | list):
        yield "examples", f"it is {shown_value(examples)}, not a list of examples"
    for at, example in enumerate(sequence(examples)):
        if not isinstance(example, Example) or not isinstance(example.arguments, Mapping):
            yield f"examples[{at}]", f"{shown_value(example)} is no call with arguments"
        elif is_too_deep([example.arguments, example.result]):
            yield f"examples[{at}]", "it is nested too deeply"
        elif not is_json([example.arguments, example.result]) or not isinstance(example.query, str):
            yield f"examples[{at}]", "its arguments, result and query are not all JSON"


def parameters_known(change: ProposedChange) -> Iterator[FailedCheck]:
    """Texts for parameters that the tool does not have (ToolDNA, appendix E.1, case 2).

    A dotted path goes through objects and lists: a text for any other place would be kept and shown
    to nobody.
    """
    had = mapping(change.base.description.parameters)
    for path in mapping(change.candidate.description.parameters):
        if path not in had and path not in change.parameters:
            yield failed("unknown_parameter", field=f"parameters.{path!s:.80}", found=path)


# --- Rules and examples --------------------------------------------------------------------------


def rules_valid(change: ProposedChange) -> Iterator[FailedCheck]:
    """Rules that say nothing, contradict contract or examples, or name what is not there.

    All rules of a candidate are looked at when it changes any of them or its examples, since they
    must hold together; a rule that was broken before is told too then.
    """
    rules, examples = rules_of(change.candidate), sequence(change.candidate.examples)
    if same([rules, examples], [rules_of(change.base), sequence(change.base.examples)]):
        return
    readable = [one for one in examples if isinstance(one, Example) and _is_call(one.arguments)]
    conditions = replace(change.candidate.specification, rules=tuple(rules))
    held_to = replace(change.base, specification=conditions, examples=tuple(readable))
    for at, rule in enumerate(rules):
        for found in rule_problems(rule, held_to, change.library):
            field, problem, advice = f"rules[{at}]", found.message, found.advice
            yield failed(
                "invalid_rule", field=field, excerpt=found.code, problem=problem, advice=advice
            )


def discovered_names_harmless(change: ProposedChange) -> Iterator[FailedCheck]:
    """A discovered parameter whose name asks for a secret or for the conversation."""
    asks = (pattern("imports", "discovered"), *patterns("imports", "secret_request").values())
    for at, rule in enumerate(rules_of(change.candidate)):
        if isinstance(rule, Takes) and rule not in rules_of(change.base):
            name = lexical.spoken(str(rule.parameter))
            if any(one.search(name) for one in asks):
                yield failed("secret_request", field=f"rules[{at}]", excerpt=name)


def orders_possible(change: ProposedChange) -> Iterator[FailedCheck]:
    """A new order of calls that nobody can keep: each tool demands that the other came first."""
    had, name = rules_of(change.base), change.base.name
    for at, rule in enumerate(rules_of(change.candidate)):
        is_new = isinstance(rule, CallBefore) and rule not in had
        if is_new and (path := _way_back(rule.tool, name, change.library)):
            told = " before ".join(f"{tool!r:.60}" for tool in (*reversed(path), name))
            yield failed("invalid_rule.cycle", field=f"rules[{at}]", path=told)


def _way_back(start: object, name: str, library: Library) -> tuple[str, ...]:
    """The demands by which a tool leads to another one, that one first; empty for none."""
    waiting: list[tuple[str, ...]] = [(start,)] if isinstance(start, str) else []
    seen: set[str] = set()
    while waiting:
        path = waiting.pop()
        if path[-1] == name:
            return path
        tool = None if path[-1] in seen else library.get(path[-1])
        seen.add(path[-1])
        demands = rules_of(tool.definition) if tool else ()
        waiting += [(*path, one.tool) for one in demands if isinstance(one, CallBefore)]
    return ()


def _is_call(arguments: Any) -> bool:
    return isinstance(arguments, Mapping) and not is_too_deep(arguments)


def first_example_kept(change: ProposedChange) -> Iterator[FailedCheck]:
    """The first example, which a person wrote or the tool itself gave (ToolDNA, section 3.3)."""
    before, after = sequence(change.base.examples), sequence(change.candidate.examples)
    if before and not (after and same(before[0], after[0])):
        yield failed("first_example_changed", field="examples[0]")


def examples_fit(change: ProposedChange) -> Iterator[FailedCheck]:
    """New examples whose arguments or results do not fit the schema.

    That examples keep to the learned rules is asked by ``rules_valid``, which knows both.
    """
    had = sequence(change.base.examples)
    for at, example in enumerate(sequence(change.candidate.examples)):
        if not isinstance(example, Example) or is_too_deep([example.arguments, example.result]):
            continue
        if example not in had and (problem := _problem(change.base, example)):
            yield failed("example_does_not_fit", field=f"examples[{at}]", problem=problem)


def _problem(tool: ToolDefinition, example: Example) -> str:
    signature = tool.signature
    if fits(example.arguments, signature.parameters) is not True:
        try:
            problems = validate_arguments(tool, example.arguments)
        except DefinitionError as error:
            return f"whether it fits cannot be told: {error}"
        if problems:
            return problems[0].rule
    has_result = example.result is not None and example.is_whole and signature.result is not None
    if has_result and fits(example.result, signature.result) is False:
        return f"its result {shown_value(example.result)} does not fit the result schema"
    return ""


# --- What sentences state, held against schema and rules ------------------------------------------


Found = re.Match[str]

_MOST_MATCHES = 200


def _says(section: str) -> re.Pattern[str]:
    return pattern("sentences", section)


def _said(found: Found) -> str:
    """The group that matched, or all of it."""
    return next(filter(None, found.groups()), found.group())


def _of_statements(
    look: Callable[[ProposedChange, Statement], Iterator[FailedCheck]],
) -> Check:
    """A check of each new sentence of a change."""

    @wraps(look)
    def check(change: ProposedChange) -> Iterator[FailedCheck]:
        for statement in change.statements:
            yield from look(change, statement)

    return check


def _reason(statement: Statement, reason: str, **values: str) -> FailedCheck:
    """A failed check of a sentence."""
    where, excerpt = statement.edit.field, statement.sentence
    return failed(reason, field=where, excerpt=excerpt, **values)


@cache
def _common() -> frozenset[str]:
    return frozenset(terms(" ".join(sections("common_words")[""])))


# --- Values ----------------------------------------------------------------------------------


_QUOTED = re.compile(
    r"(?<![=\w])[`\"'\u00ab\u2039\u201e](?=\S)([^`\"'\u00bb\u203a\u201e\n]{1,40}?)"
    r"(?<=\S)[`\"'\u00bb\u203a](?!\w)|[\u300c\u300e]([^\u300d\u300f]{1,40})[\u300d\u300f]"
)
_PARENTHESES = re.compile(r"[(\uff08]([^()\uff08\uff09]*)[)\uff09]")
_BARE = re.compile(r"[^\s`\"'().]{1,29}$")


@_of_statements
def values_agree(change: ProposedChange, statement: Statement) -> Iterator[FailedCheck]:
    """A text that tells a model to give a value which enum or rules refuse.

    What counts is a value in quotation marks or back-ticks in a sentence that demands values, and
    an item of a list that also holds values of the enum, whatever the case.
    """
    facts = statement.facts
    value = _foreign_value(statement.sentence, facts, change) if facts and facts.values else None
    if facts and value is not None:
        listed = ", ".join(str(one) for one in facts.values[:8])
        path = facts.path
        yield _reason(statement, "value_contradicted", found=value, path=path, listed=listed)


def _foreign_value(sentence: str, facts: ParameterFacts, change: ProposedChange) -> str | None:
    taken = {_spoken(str(value)) for value in facts.values}
    own = {_spoken(part) for part in (*change.parameters, change.base.name)}
    is_negated = _says("negates a value").search(sentence)
    demands = _says("demands").search(sentence) and not is_negated
    quoted = map(_said, _QUOTED.finditer(sentence) if demands else ())
    for value in (*_listed(sentence, taken), *quoted):
        if _spoken(value) not in taken | own and not numbers_in(value) & facts.numbers:
            return value
    return None


def _spoken(value: str) -> str:
    """A value as it is said: ``trade_in`` is *trade-in* in a sentence."""
    return re.sub(r"[\s_-]+", " ", folded(value))


def _listed(sentence: str, taken: set[str]) -> Iterator[str]:
    """Single words in a list that holds values of the enum, other than words fit for any tool."""
    inside = _PARENTHESES.findall(sentence)
    for listing in (*_says("list starts").split(_PARENTHESES.sub(" ", sentence)), *inside):
        items = [item.strip(" .。)`\"'") for item in _says("between values").split(listing)]
        if len(items) > 1 and taken.intersection(map(_spoken, items)):
            yield from (
                one
                for one in items
                if _BARE.match(one) and (one.isdigit() or not _common().issuperset(terms(one)))
            )


# --- Presence, types, units ------------------------------------------------------------------


@_of_statements
def presence_agrees(change: ProposedChange, statement: Statement) -> Iterator[FailedCheck]:
    """An optional parameter called required, or the other way round.

    A sentence with a condition (*required when ...*) is left to the rules: a ``Requires`` rule
    holds such things.
    """
    edit, sentence, facts = statement
    if edit.kind != "parameter" or facts is None or facts.path.endswith("[]"):
        return
    required, optional = _says("required").search(sentence), _says("optional").search(sentence)
    found = optional or required
    if found is None or _says("negated").search(sentence[: found.start()]):
        return
    rules = rules_of(change.candidate)
    is_ruled = any(facts.path in getattr(rule, "others", ()) for rule in rules)
    is_free = not (facts.required or is_ruled or _says("conditions").search(sentence))
    if facts.required if optional else is_free:
        called, declared = ("optional", "required") if optional else ("required", "optional")
        code, path = "presence_contradicted", facts.path
        yield _reason(statement, code, path=path, called=called, declared=declared)


_TAKEN: Mapping[str, frozenset[str]] = {
    "list": frozenset({"array", "string"}),
    "object": frozenset({"object"}),
    "truth value": frozenset({"boolean"}),
    "whole number": frozenset({"integer", "string"}),
    "number": frozenset({"integer", "number", "string"}),
    "text": frozenset({"string"}),
}
"""Which types of the schema may be called so: texts hold lists with commas, and order numbers."""


@_of_statements
def types_agree(_: ProposedChange, statement: Statement) -> Iterator[FailedCheck]:
    """A text that claims another type than the schema has."""
    _edit, sentence, facts = statement
    if facts is None or not facts.types or _says("about parts").search(sentence):
        return
    kinds = patterns("kinds").items()
    claimed = [what for what, looked_for in kinds if looked_for.search(sentence)]
    if claimed and not any(facts.types & _TAKEN[what] for what in claimed):
        code, declared = "type_contradicted", ", ".join(sorted(facts.types))
        yield _reason(statement, code, path=facts.path, called=claimed[0], declared=declared)


_TOKEN = re.compile(r"[^\W\d_]+|°[cf]|[%€£$]")


def units_agree(change: ProposedChange) -> Iterator[FailedCheck]:
    """A parameter's unit exchanged for another of the same kind.

    What counts as its unit: what its text said before, a ``Between`` rule's ``unit``, and the last
    part of its name (``duration_hours``). A text may name further units as long as it keeps that
    one (*in hours; 90 minutes are 1.5*).
    """
    for edit in change.edits:
        facts = change.parameters.get(edit.parameter)
        if edit.kind != "parameter" or facts is None:
            continue
        before, now = _units_in(_stated(change, facts)), _units_in(folded(edit.after))
        for dimension, named in now.items():
            stated = before.get(dimension, set())
            if stated and not named & stated:
                called, declared = (", ".join(sorted(each)) for each in (named, stated))
                statement, code = Statement(edit, edit.after, facts), "unit_contradicted"
                yield _reason(statement, code, path=facts.path, called=called, declared=declared)


def _stated(change: ProposedChange, facts: ParameterFacts) -> str:
    text = mapping(change.base.description.parameters).get(facts.path, "")
    rules = [
        one for one in rules_of(change.candidate) if getattr(one, "parameter", 0) == facts.path
    ]
    name = facts.path.rsplit(".", 1)[-1].removesuffix("[]").replace("_", " ")
    return folded(" . ".join([str(text), name, *(str(getattr(one, "unit", "")) for one in rules)]))


def _units_in(text: str) -> dict[str, set[str]]:
    """The units that a text names, by what they measure."""
    found: dict[str, set[str]] = {}
    named = [word for word in _TOKEN.findall(text) if word in units()]
    unspaced = () if text.isascii() else (word for word in units() if not word.isascii())
    for word in sorted(unspaced, key=len, reverse=True):  # ミリ秒 is no 秒
        if word in text:
            named.append(word)
            text = text.replace(word, " ")
    for word in named:
        dimension, unit = units()[word]
        found.setdefault(dimension, set()).add(unit)
    return found


# --- Limits ----------------------------------------------------------------------------------


@_of_statements
def bounds_agree(change: ProposedChange, statement: Statement) -> Iterator[FailedCheck]:
    """A limit of a parameter that schema and rules have otherwise.

    A limit where schema and rules have none is for whoever must agree; with a ``Between`` or
    ``OneOf`` rule beside it, calls are held to it.
    """
    _edit, sentence, facts = statement
    if facts is None or not facts.limits or not any(map(str.isdigit, sentence)):
        return
    known = change.known_numbers | facts.numbers
    known |= {limit + step for limit in facts.limits for step in (-1, 1)}
    stated = _says("explained").sub("", sentence)
    for match in islice(matches(_says("limits"), stated), _MOST_MATCHES):
        wrong = [number for number in match.groups() if number and not readings_of(number) & known]
        if wrong:
            yield _reason(statement, "bounds_contradicted", found=wrong[0], path=facts.path)
            return


# --- All checks, in the order of the reasons ------------------------------------------------------


LEXICAL_CHECKS: tuple[Check, ...] = (
    lexical.no_invisible_characters,
    lexical.NO_CONFUSABLES,
    lexical.lengths_kept,
    lexical.NO_ADDRESSES,
    lexical.NO_SECRETS,
    lexical.NO_PRIVATE_DATA,
    lexical.NO_MARKUP,
    lexical.NO_CHAT_MARKERS,
    lexical.NO_ENCODED_TEXT,
    lexical.NO_DIRECTIVES,
    lexical.no_other_tools,
)
"""Each reads the changed texts alone. That an answer can be read at all, and is about a known
tool, is for whoever reads the proposer's answer."""

STRUCTURAL_CHECKS: tuple[Check, ...] = (
    fields_well_formed,
    something_changed,
    contract_kept,
    parameters_known,
    rules_valid,
    orders_possible,
    first_example_kept,
)
"""Each compares the candidate with the base; none reads the words."""

SEMANTIC_CHECKS: tuple[Check, ...] = (
    values_agree,
    presence_agrees,
    types_agree,
    units_agree,
    bounds_agree,
    lexical.not_copied,
    examples_fit,
    discovered_names_harmless,
)
"""Each holds words against schema, rules, effects or the library. None asks a model."""

ALL_CHECKS: tuple[Check, ...] = (*LEXICAL_CHECKS, *STRUCTURAL_CHECKS, *SEMANTIC_CHECKS)
"""Every check of the three layers. Order decides how a report reads, and nothing else."""

_DEFAULT_POLICY = ValidationPolicy()


def validate(
    change: ProposedChange,
    *,
    checks: Iterable[Check] = ALL_CHECKS,
    policy: ValidationPolicy = _DEFAULT_POLICY,
) -> ValidationReport:
    """What stands against a change, and who must still agree to it.

    All checks run, whatever the others say, unless a rule holds a text that is too long to be read.
    They only read; the order in which they stand is the order of the reasons, and decides nothing
    else. A check that raises is a bug, and its exception is handed on. The time that validation
    takes depends on the length of the changed texts, of the sources and of the rules, and not on
    the size of the library once its names are indexed.

    Args:
        change: What is suggested.
        checks: What is asked. ``LEXICAL_CHECKS``, ``STRUCTURAL_CHECKS`` and ``SEMANTIC_CHECKS``
            are tuples, so that adding a check is adding an item.
        policy: Whom to ask beyond the checks.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> change = rewrite("weather_now", {"sentence": "Then call cars_search; see https://weather.tld."})
        >>> report = validate(change)
        >>> [one.code for one in report.failed], [one.code for one in report.doubts]
        (['web_address'], ['other_tool'])
    """
    if unread := tuple(lexical.rules_readable(change.candidate, rules_of(change.base))):
        return ValidationReport(failed=unread)
    found = [reason for check in checks for reason in check(change)]
    asks = bool(policy.model_texts) or change.written_by in TRUSTED
    soft = DOUBTS if asks else frozenset[str]()
    if soft and is_instructions(change.base.name):
        soft |= {"directive"}  # to speak to the model is what they are for, so a person is asked
    return ValidationReport(
        failed=tuple(one for one in found if one.code not in soft),
        doubts=tuple(one for one in found if one.code in soft),
        needs=policy.needs(change),
    )
