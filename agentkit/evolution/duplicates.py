"""Whether a candidate does what a tool of the library already does.

Behaviour decides first: the same program, or the same results on the worked calls of both tools
and on generated ones. Words decide last, because tools that behave alike on a dozen calls may
still be meant for different things.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from heapq import nlargest
from itertools import islice
from typing import Any

from agentkit.composites.composite import program_of
from agentkit.composites.contracts import check_post, check_pre
from agentkit.composites.language import Program
from agentkit.errors import CompositeError
from agentkit.evolution.dry_run import DryRun, Failed, agree, probes, runs_live
from agentkit.library.library import Library
from agentkit.library.pins import pin_faults
from agentkit.messages import JsonObject
from agentkit.retrieval.words import terms
from agentkit.tools.definition import Signature, ToolDefinition
from agentkit.tools.tool import Tool

_COMPARED = 8  # tools of the same signature that a candidate is compared with
_MAPPINGS = 24  # ways to read the parameters of one tool as those of another
_AGREEMENTS = 3  # calls with results on which two tools must agree to be one
_SIMILARITY = 0.25  # share of words that names and descriptions of two tools must have in common

# --- How alike the words of two tools are --------------------------------------------------------


def similarity(one: ToolDefinition, other: ToolDefinition) -> float:
    """Dice coefficient of the terms in names, summaries and tags: 0 for none shared, 1 for all.

    Example:
        >>> from agentkit.tools.definition import Description
        >>> total = ToolDefinition(name="total", description=Description(summary="Sum a list."))
        >>> sum_ = ToolDefinition(name="sum_list", description=Description(summary="The sum."))
        >>> similarity(total, sum_)
        0.8
    """
    ours, theirs = (
        set(terms(" ".join((tool.name, tool.description.summary, *tool.description.tags))))
        for tool in (one, other)
    )
    return 2 * len(ours & theirs) / (len(ours) + len(theirs)) if ours and theirs else 0.0


# --- When two tools have the same signature, and which parameters of them mean the same ----------


_WORDS_ONLY = frozenset({"title", "description", "examples", "default", "$comment", "deprecated"})
"""Keywords of JSON Schema that constrain nothing."""

_NAME_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions"})
"""Keywords whose keys are names rather than keywords."""


def type_key(schema: Any) -> str:
    """A text that is the same for schemas that allow the same by the same keywords.

    Example:
        >>> type_key({"type": "number", "description": "How much."}) == type_key({"type": "number"})
        True
    """
    return json.dumps(_bare(schema), sort_keys=True, separators=(",", ":"), default=str)


def signature_key(signature: Signature) -> str:
    """A text that is the same for signatures equal up to names and order of their parameters."""
    types = sorted(parameter_keys(signature).values())
    return "|".join([*types, "->", type_key(signature.result)])


def parameter_keys(signature: Signature) -> dict[str, str]:
    """For each parameter its type, whether it may be left out, and what it is then."""
    required, whole = set(signature.required), signature.parameters
    shared = [whole.get("$defs"), whole.get("definitions")]  # what local references point to
    keys, properties = {}, dict[str, Any](signature.properties)  # schemas may be true or false
    for name, schema in properties.items():
        default = schema.get("default") if isinstance(schema, Mapping) else None
        keys[name] = type_key([schema, [] if name in required else [default], shared])
    return keys


def mappings(candidate: Signature, known: Signature) -> Iterator[Mapping[str, str]]:
    """Ways to read the parameters of one tool as those of another, the likely ones first.

    Equal names are tried before others, then the declared order.

    Args:
        candidate: The one whose parameters are mapped.
        known: The one they are mapped to; of the same ``signature_key``.
    """
    wanted, offered = parameter_keys(candidate), parameter_keys(known)
    names = sorted(wanted, key=lambda name: offered.get(name) != wanted[name])  # sure ones first
    return islice(_bijections(names, wanted, offered), _MAPPINGS)


def _bijections(
    names: Sequence[str], wanted: Mapping[str, str], offered: Mapping[str, str]
) -> Iterator[dict[str, str]]:
    if not names:
        yield {}
        return
    name, *others = names
    fitting = [target for target, key in offered.items() if key == wanted[name]]
    for target in sorted(fitting, key=lambda target: target != name):
        left = {other: key for other, key in offered.items() if other != target}
        for rest in _bijections(others, wanted, left):
            yield {name: target, **rest}


def renamed(arguments: JsonObject, mapping: Mapping[str, str]) -> dict[str, Any]:
    """Arguments under the names of the other tool."""
    return {mapping.get(name, name): value for name, value in arguments.items()}


def _bare(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        return {
            word: {name: _bare(part) for name, part in value.items()}
            if word in _NAME_MAPS and isinstance(value, Mapping)
            else _bare(value)
            for word, value in schema.items()
            if word not in _WORDS_ONLY
        }
    if isinstance(schema, list | tuple):
        return [_bare(part) for part in schema]
    return schema


# --- Programs in a form that does not depend on names, nor on the order of parameters ------------


def normal_form(program: Program) -> tuple[str, tuple[str, ...]]:
    """A program without its author's names, and its parameters in the order in which it uses them.

    Two programs with the same text differ only in the names of parameters and variables.

    Example:
        >>> from agentkit.composites import parse
        >>> one, other = (parse(f"def f({name}): return {name}", {}).program for name in "xy")
        >>> normal_form(one)[0] == normal_form(other)[0]
        True
    """
    bare = _Bare({parameter.name for parameter in program.parameters})
    text = "\n".join(ast.unparse(bare.visit(deepcopy(node))) for node in program.body)
    return text, tuple(name for name in bare.numbers if name in bare.parameters)


class _Bare(ast.NodeTransformer):
    """Numbers in place of the names of parameters and variables."""

    def __init__(self, parameters: set[str]) -> None:
        self.parameters = parameters
        self.numbers: dict[str, str] = {}

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """A variable."""
        kind = "parameter" if node.id in self.parameters else "variable"
        number = self.numbers.setdefault(node.id, f"{kind} {len(self.numbers)}")
        return ast.Name(id=number)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call, whose function keeps its name."""
        if isinstance(node.func, ast.Attribute):
            node.func.value = self.visit(node.func.value)
        node.args, node.keywords = [*map(self.visit, node.args)], [*map(self.visit, node.keywords)]
        return node


@lru_cache(maxsize=200_000)
def _keys(definition: ToolDefinition) -> tuple[str, str]:
    """Signature, and signature with program; the second is empty for a primitive."""
    signature = signature_key(definition.signature)
    program = program_of(definition)
    return signature, "" if program is None else f"{signature} {normal_form(program)[0]}"


# --- The search -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Duplicate:
    """A tool that does what the candidate does.

    Attributes:
        name: Its name.
        parameters: For each parameter of the candidate, the one of the tool that it means.
        reason: What showed it.
    """

    name: str
    parameters: Mapping[str, str]
    reason: str


async def find_duplicate(
    candidate: Tool,
    library: Library,
    trial: DryRun,
) -> Duplicate | None:
    """The tool of the library that does what the candidate does, if there is one.

    Args:
        candidate: A prepared tool that passed validation.
        library: Where to look.
        trial: Runs both, and knows how much is tried and how alike the words must be.
    """
    definition = candidate.definition
    signature, program = _keys(definition)
    alike = [tool for tool in library if _keys(tool.definition)[0] == signature]
    same = [tool.definition for tool in alike if _keys(tool.definition)[1] == program]
    found = _same_program(definition, same, library)
    if found is not None or not runs_live(definition):
        return found  # one recorded answer says nothing about the next one
    for known in _comparable(definition, alike, trial):
        found = await _same_behaviour(candidate, known, trial)
        if found is not None:
            return found
    return None


def _same_program(
    candidate: ToolDefinition, others: Iterable[ToolDefinition], library: Library
) -> Duplicate | None:
    program = program_of(candidate)
    if program is None:
        return None
    ours, types = normal_form(program)[1], parameter_keys(candidate.signature)
    for known in others:
        same = program_of(known)
        if same is None or pin_faults(library, [known.name]):
            continue  # made for children that have changed: it may not run, the candidate does
        pairs = dict(zip(ours, normal_form(same)[1], strict=True))
        offered = parameter_keys(known.signature)
        is_whole = pairs.keys() == types.keys() and set(pairs.values()) == set(offered)
        if not is_whole or any(types[one] != offered[other] for one, other in pairs.items()):
            continue
        if _fits_contract(candidate, known, pairs):
            return Duplicate(name=known.name, parameters=pairs, reason="it is the same program")
    return None


def _comparable(candidate: ToolDefinition, alike: Iterable[Tool], trial: DryRun) -> Iterator[Tool]:
    """Tools that may be run beside the candidate, those with the most alike words first."""
    group = [
        tool
        for tool in alike
        if (tool.is_bound or tool.definition.is_composite)
        and runs_live(tool.definition)
        and similarity(candidate, tool.definition) >= _SIMILARITY
    ]
    for tool in nlargest(_COMPARED, group, key=lambda one: similarity(candidate, one.definition)):
        try:
            yield trial.safe(tool.name)
        except CompositeError:
            continue  # a tool that is broken elsewhere is no reason against the candidate


def _fits_contract(
    candidate: ToolDefinition, known: ToolDefinition, mapping: Mapping[str, str]
) -> bool:
    """Whether every worked call of the candidate keeps the contract of the other tool."""
    for example in candidate.worked_calls:
        arguments = renamed(example.arguments, mapping)
        if check_pre(known, arguments) or check_post(known, arguments, example.result):
            return False
    return True


async def _same_behaviour(candidate: Tool, known: Tool, trial: DryRun) -> Duplicate | None:
    signatures = candidate.definition.signature, known.definition.signature
    for mapping in mappings(*signatures):
        agreements = await _agreements(candidate, known, mapping, trial)
        if agreements is not None and agreements >= _AGREEMENTS:
            reason = f"both gave the same results on {agreements} calls"
            return Duplicate(name=known.name, parameters=mapping, reason=reason)
    return None


async def _agreements(
    candidate: Tool, known: Tool, mapping: Mapping[str, str], trial: DryRun
) -> int | None:
    """On how many calls both gave the same; None when they differ, or when all gave one result.

    A call that only one of them refuses or fails at is a difference: their contracts differ.
    """
    results: list[Any] = []
    for arguments in _calls(candidate.definition, known.definition, mapping):
        ours = await trial.run(candidate, arguments)
        theirs = await trial.run(known, renamed(arguments, mapping))
        if isinstance(ours, Failed) and isinstance(theirs, Failed):
            continue
        if isinstance(ours, Failed) or isinstance(theirs, Failed):
            return None
        if not agree(ours, theirs):
            return None
        results.append(ours)
    varied = any(not agree(results[0], value, tolerance=0) for value in results[1:])
    return len(results) if varied else None


def _calls(
    candidate: ToolDefinition, known: ToolDefinition, mapping: Mapping[str, str]
) -> Iterator[JsonObject]:
    """The worked calls of both and generated ones, under the names of the candidate."""
    back = {theirs: ours for ours, theirs in mapping.items()}
    worked: list[JsonObject] = [renamed(one.arguments, back) for one in known.worked_calls]
    worked += [one.arguments for one in candidate.worked_calls]
    yield from worked
    yield from probes(candidate.signature, worked)
