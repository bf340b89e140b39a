"""The checks: whether a change keeps the contract, and what it may bring beside words.

Most compare the candidate with the base; what sentences state is read in ``sentences``. The tables
at the end list all checks, in the order of the reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from agentkit.composites import rule_problems
from agentkit.errors import DefinitionError
from agentkit.evolution.validation import lexical_checks as lexical
from agentkit.evolution.validation.approvals import DOUBTS, TRUSTED, ValidationPolicy
from agentkit.evolution.validation.report import (
    Check,
    FailedCheck,
    ProposedChange,
    ValidationReport,
    failed,
)
from agentkit.evolution.validation.sentences import sentences_agree
from agentkit.evolution.validation.texts import (
    is_too_deep,
    mapping,
    pattern,
    patterns,
    rules_of,
    same,
    sequence,
    shown_value,
)
from agentkit.library.library import Library
from agentkit.tools.canonical import is_json
from agentkit.tools.definition import Example, ToolDefinition, is_instructions
from agentkit.tools.rules import CallBefore, Takes
from agentkit.tools.schema import parts_at
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
    schema = change.base.known_signature.parameters
    for path in mapping(change.candidate.description.parameters):
        if path not in had and not (isinstance(path, str) and parts_at(schema, path)):
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
    """The first example, which a person wrote or the tool itself gave (ToolDNA, appendix B)."""
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
    sentences_agree,
    lexical.not_copied,
    examples_fit,
    discovered_names_harmless,
)
"""Each holds what is new against schema, episodes or other tools. None asks a model."""

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
