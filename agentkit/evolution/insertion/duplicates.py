"""Whether a candidate does what a tool of the library already does.

Behaviour decides first: the same program, or the same results on the worked calls of both tools
and on generated ones. Words decide last, because tools that behave alike on a dozen calls may
still be meant for different things.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import Any, TypeAlias

from agentkit.composites.contracts import check_post, check_pre
from agentkit.errors import CompositeError
from agentkit.evolution.insertion.agreement import agree
from agentkit.evolution.insertion.bodies import normal_form, passed_on
from agentkit.evolution.insertion.dry_run import DryRun, Failed
from agentkit.evolution.insertion.policy import InsertPolicy
from agentkit.evolution.insertion.probes import probes
from agentkit.evolution.insertion.signatures import forced_mapping, mappings, renamed, signature_key
from agentkit.evolution.insertion.similarity import similarity, similarity_to
from agentkit.evolution.insertion.snapshot import Snapshot
from agentkit.evolution.loops import require_loop
from agentkit.library.pins import pin_faults
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

Judge: TypeAlias = Callable[[ToolDefinition, ToolDefinition], Awaitable[bool]]
"""Says whether a candidate and a tool that behaves like it are meant for the same; see
``ModelJudge``."""


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
    snapshot: Snapshot,
    trial: DryRun,
    policy: InsertPolicy,
    judge: Judge | None = None,
) -> Duplicate | None:
    """The tool of the library that does what the candidate does, if there is one.

    Args:
        candidate: A prepared tool that passed validation.
        snapshot: Where to look.
        trial: Runs both.
        policy: How much is tried, and how alike the words must be.
        judge: Asked when two tools behave alike and their words differ.
    """
    definition = candidate.definition
    alike = snapshot.index.like(definition)
    found = _passed_on(definition, snapshot) or _same_program(definition, alike.program, snapshot)
    if found is not None or not trial.is_pure(definition):
        return found  # one recorded answer says nothing about the next one
    for known in _comparable(definition, alike.signature, snapshot, trial, policy):
        found = await _same_behaviour(candidate, known, trial, policy)
        if found is not None and await _same_meaning(definition, known.definition, policy, judge):
            return found
    return None


def _passed_on(candidate: ToolDefinition, snapshot: Snapshot) -> Duplicate | None:
    passed = passed_on(candidate)
    if passed is None:
        return None
    child, parameters = passed
    known = snapshot.library[child].definition
    same = signature_key(candidate.signature) == signature_key(known.signature)
    if not same or not _fits_contract(candidate, known, parameters):
        return None
    reason = f"it only passes its arguments on to {child!r}"
    return Duplicate(name=child, parameters=parameters, reason=reason)


def _same_program(
    candidate: ToolDefinition, names: Sequence[str], snapshot: Snapshot
) -> Duplicate | None:
    if candidate.body is None or not names:
        return None
    ours = normal_form(candidate.body).parameters
    for name in names:
        known = snapshot.library[name].definition
        if pin_faults(snapshot.library, [name]):
            continue  # made for children that have changed: it may not run, the candidate does
        theirs = normal_form(known.body or {}).parameters
        pairs = dict(zip(ours, theirs, strict=True))
        parameters = forced_mapping(candidate.signature, known.signature, pairs)
        if parameters is not None and _fits_contract(candidate, known, parameters):
            return Duplicate(name=name, parameters=parameters, reason="it is the same program")
    return None


def _comparable(
    candidate: ToolDefinition,
    names: Sequence[str],
    snapshot: Snapshot,
    trial: DryRun,
    policy: InsertPolicy,
) -> Iterator[Tool]:
    """Tools that may be run beside the candidate, those with the most alike words first."""
    least = policy.least_agreements - policy.probes - len(candidate.worked_calls)
    group = [
        tool
        for tool in map(snapshot.library.__getitem__, names)
        if len(tool.definition.worked_calls) >= least  # else there is too little to compare
        and _has_code(tool)
        and trial.is_pure(tool.definition)
    ]
    likeness = similarity_to(candidate)
    for tool in nlargest(policy.compared, group, key=lambda tool: likeness(tool.definition)):
        try:
            yield trial.safe(tool.name)
        except CompositeError:
            continue  # a tool that is broken elsewhere is no reason against the candidate


def _has_code(tool: Tool) -> bool:
    return tool.is_bound or tool.definition.is_composite


def _fits_contract(
    candidate: ToolDefinition, known: ToolDefinition, mapping: Mapping[str, str]
) -> bool:
    """Whether every worked call of the candidate keeps the contract of the other tool."""
    for example in candidate.worked_calls:
        arguments = renamed(example.arguments, mapping)
        if check_pre(known, arguments) or check_post(known, arguments, example.result):
            return False
    return True


async def _same_behaviour(
    candidate: Tool, known: Tool, trial: DryRun, policy: InsertPolicy
) -> Duplicate | None:
    signatures = candidate.definition.signature, known.definition.signature
    for mapping in mappings(*signatures, most=policy.mappings):
        agreements = await _agreements(candidate, known, mapping, trial, policy)
        if agreements is not None and agreements >= policy.least_agreements:
            reason = f"both gave the same results on {agreements} calls"
            return Duplicate(name=known.name, parameters=mapping, reason=reason)
    return None


async def _agreements(
    candidate: Tool, known: Tool, mapping: Mapping[str, str], trial: DryRun, policy: InsertPolicy
) -> int | None:
    """On how many calls both gave the same; None when they differ, or when all gave one result.

    A call that only one of them refuses or fails at is a difference: their contracts differ.
    """
    results: list[Any] = []
    for arguments in _calls(candidate.definition, known.definition, mapping, policy):
        ours = await trial.run(candidate, arguments)
        theirs = await trial.run(known, renamed(arguments, mapping))
        if isinstance(ours, Failed) and isinstance(theirs, Failed):
            continue
        if isinstance(ours, Failed) or isinstance(theirs, Failed):
            return None
        if not agree(ours.value, theirs.value, tolerance=policy.tolerance):
            return None
        results.append(ours.value)
    varied = any(not agree(results[0], value, tolerance=0) for value in results[1:])
    return len(results) if varied else None


def _calls(
    candidate: ToolDefinition,
    known: ToolDefinition,
    mapping: Mapping[str, str],
    policy: InsertPolicy,
) -> Iterator[JsonObject]:
    """The worked calls of both and generated ones, under the names of the candidate."""
    back = {theirs: ours for ours, theirs in mapping.items()}
    worked: list[JsonObject] = [renamed(one.arguments, back) for one in known.worked_calls]
    worked += [one.arguments for one in candidate.worked_calls]
    yield from worked
    yield from probes(candidate.signature, worked, count=policy.probes)


async def _same_meaning(
    candidate: ToolDefinition, known: ToolDefinition, policy: InsertPolicy, judge: Judge | None
) -> bool:
    if similarity(candidate, known) >= policy.description_similarity:
        return True
    if judge is None:
        return False
    require_loop()
    return await judge(candidate, known)
