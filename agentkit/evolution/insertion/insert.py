"""InsertTool: whether a candidate enters the library, and how (CoCoDA, Algorithm 3).

Nothing here writes; ``ToolManager`` commits what is decided. The steps, in order: read and bind,
place in the DAG, the children's worked calls, the candidate's own, generated calls against all
contracts, duplicates, name.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from agentkit.composites.problems import CompositeLimits
from agentkit.errors import CompositeError
from agentkit.evolution.insertion.budget import BudgetSpent
from agentkit.evolution.insertion.decision import Addition, Decision, Merger
from agentkit.evolution.insertion.dry_run import DryRun
from agentkit.evolution.insertion.duplicates import Duplicate, Judge, find_duplicate
from agentkit.evolution.insertion.outcome import SAME_TOOL, Rejected
from agentkit.evolution.insertion.policy import InsertPolicy
from agentkit.evolution.insertion.reading import Candidate, read_candidate
from agentkit.evolution.insertion.refusal import Refused, refuse, refuse_source
from agentkit.evolution.insertion.revision import check_acyclic, check_parents, pinned_above
from agentkit.evolution.insertion.signatures import renamed
from agentkit.evolution.insertion.snapshot import Snapshot
from agentkit.evolution.insertion.stubs import with_examples
from agentkit.evolution.insertion.trial import check_children, check_examples, check_probes
from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class Procedure:
    """How candidates are judged.

    Attributes:
        policy: What is asked of a candidate.
        limits: Caps on its text and its runs.
        judge: Decides on duplicates whose words differ; None keeps both.
    """

    policy: InsertPolicy = field(default_factory=InsertPolicy)
    limits: CompositeLimits = field(default_factory=CompositeLimits)
    judge: Judge | None = None


async def decide(candidate: Candidate, snapshot: Snapshot, procedure: Procedure) -> Decision:
    """What is to happen with a candidate; the library is not changed.

    Args:
        candidate: Text of one function, a definition with a program, or a tool with code.
        snapshot: The library.
        procedure: How to judge.

    Raises:
        ModelError: The judge could not answer.
    """
    name = _name_of(candidate)
    try:
        tool = read_candidate(
            candidate, snapshot.library, policy=procedure.policy, limits=procedure.limits
        )
        name = tool.name
        return await _decide(tool, snapshot, procedure)
    except Refused as refused:
        return refused.rejected
    except BudgetSpent as spent:
        return Rejected(
            code="budget",
            name=name,
            explanation=f"trying {name!r} out took {spent}",
            advice="make it do less on its examples, or raise the policy's bound",
        )


async def _decide(tool: Tool, snapshot: Snapshot, procedure: Procedure) -> Decision:
    library, policy = snapshot.library, procedure.policy
    known = library.get(tool.name)
    if known is not None and known.definition == tool.definition:
        own = {name: name for name in tool.definition.signature.properties}
        reason = SAME_TOOL
        return Merger(into=known.definition, moved=0, parameters=own, reason=reason, is_itself=True)
    revises = known is not None and policy.allow_revisions
    if revises:
        check_acyclic(tool.definition, library)
    trial = DryRun(library.tools, policy=policy, limits=procedure.limits)
    prepared = _prepared(tool, trial)
    await check_children(tool.definition, trial, policy)
    await check_examples(prepared, trial, policy)
    await check_probes(prepared, trial, policy)
    if revises:
        above = await check_parents(tool, library, policy=policy, limits=procedure.limits)
        return Addition(tool=tool, revised=True, repinned=above)
    found = await find_duplicate(prepared, snapshot, trial, policy, procedure.judge)
    if found is not None:
        return _merger(tool.definition, found, library, policy)
    if known is not None:
        raise _name_taken(known.definition)
    return Addition(tool=tool)


def _prepared(tool: Tool, trial: DryRun) -> Tool:
    try:
        return trial.prepared(tool)
    except CompositeError as error:
        raise refuse_source(tool.name, error.problems) from error


def _merger(
    candidate: ToolDefinition, found: Duplicate, library: Library, policy: InsertPolicy
) -> Merger:
    known = library[found.name].definition
    examples = [
        replace(example, arguments=renamed(example.arguments, found.parameters))
        for example in candidate.examples
    ]
    into = with_examples(known, examples, most=policy.most_examples)
    moved = len(into.examples) - len(known.examples)
    above = pinned_above(library, into, candidate=candidate.name) if moved else ()
    return Merger(
        into=into, moved=moved, parameters=found.parameters, reason=found.reason, repinned=above
    )


def _name_taken(known: ToolDefinition) -> Refused:
    return refuse(
        "name_taken",
        known.name,
        f"{known.name!r} stands for another tool ({known.digest[:12]})",
        "give the function another name, or allow revisions "
        "(InsertPolicy(allow_revisions=True)) when it is to take the place of that one",
    )


def _name_of(candidate: Candidate) -> str:
    return "" if isinstance(candidate, str) else candidate.name
