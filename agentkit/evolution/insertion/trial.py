"""Trying a candidate out: its children's worked calls, its own, and generated ones."""

from __future__ import annotations

import json
from typing import Any

from agentkit.evolution.insertion.agreement import agree
from agentkit.evolution.insertion.dry_run import DryRun, Failed
from agentkit.evolution.insertion.outcome import RejectionCode, Witness
from agentkit.evolution.insertion.policy import InsertPolicy
from agentkit.evolution.insertion.probes import probes
from agentkit.evolution.insertion.refusal import Refused, refuse
from agentkit.messages import JsonObject
from agentkit.tools.definition import Example, ToolDefinition
from agentkit.tools.tool import Tool
from agentkit.tools.validation import validate_arguments

_LONGEST = 300


async def check_children(candidate: ToolDefinition, trial: DryRun, policy: InsertPolicy) -> None:
    """Every child still does what its own worked calls say (L3 and L4 of each child).

    Raises:
        Refused: One does not.
    """
    for child in candidate.signature.children:
        tool = trial.safe(child.name)
        for example in tool.definition.worked_calls:
            explanation = await example_fault(tool, example, trial, policy)
            if explanation is not None:
                raise refuse(
                    "child_examples_failed",
                    candidate.name,
                    f"the child {child.name!r} does not do what its own worked call says: "
                    f"{explanation}",
                    f"repair {child.name!r}, or correct its examples, before building on it",
                    witness=_witness(tool.definition.name, example.arguments, example.result),
                )


async def example_fault(
    tool: Tool, example: Example, trial: DryRun, policy: InsertPolicy
) -> str | None:
    """What is wrong with one worked call of a prepared tool; None when it holds."""
    ran = await trial.run(tool, example.arguments)
    if isinstance(ran, Failed):
        return ran.message
    if agree(example.result, ran.value, tolerance=policy.tolerance):
        return None
    call = call_text(tool.definition.name, example.arguments)
    return f"{call} gave {_text(ran.value)}, not {_text(example.result)}"


async def check_examples(candidate: Tool, trial: DryRun, policy: InsertPolicy) -> None:
    """The candidate's own worked calls fit its parameters, run, and give what they say.

    Raises:
        Refused: One does not, or there are none.
    """
    definition = candidate.definition
    if not definition.worked_calls and not policy.allow_without_examples:
        raise refuse(
            "no_examples",
            definition.name,
            f"{definition.name!r} has no worked call, so nothing shows that it works",
            "give one to three examples with arguments and result",
        )
    for example in definition.examples:
        _check_fit(definition, example)
        if not example.is_whole:
            continue
        ran = await trial.run(candidate, example.arguments)
        if isinstance(ran, Failed):
            raise explained(definition, example.arguments, ran, trial)
        if not agree(example.result, ran.value, tolerance=policy.tolerance):
            call = call_text(definition.name, example.arguments)
            raise refuse(
                "example_failed",
                definition.name,
                f"the worked call {call} says {_text(example.result)}, but the program gives "
                f"{_text(ran.value)}",
                "correct the program, or the result in the example",
                witness=_witness(definition.name, example.arguments, example.result, ran.value),
            )


async def check_probes(candidate: Tool, trial: DryRun, policy: InsertPolicy) -> None:
    """No generated call that the candidate allows breaks a child's contract, or its own promise.

    Errors without a contract say nothing here: nobody promised that there are none.

    Raises:
        Refused: One does.
    """
    definition = candidate.definition
    if not policy.probe_contracts or not trial.is_pure(definition):
        return
    worked = [example.arguments for example in definition.worked_calls]
    for arguments in probes(definition.signature, worked, count=policy.probes):
        ran = await trial.run(candidate, arguments)
        if not isinstance(ran, Failed) or ran.cause not in {"precondition", "postcondition"}:
            continue
        if ran.cause == "precondition" and ran.tool == definition.name:
            continue  # outside of what the candidate allows
        raise explained(definition, arguments, ran, trial)


def explained(
    definition: ToolDefinition, arguments: JsonObject, failed: Failed, trial: DryRun
) -> Refused:
    """The reason to reject a candidate one of whose calls failed."""
    name = definition.name
    call = call_text(name, arguments)
    code, advice = _meaning(definition, failed, trial)
    witness = Witness(
        tool=failed.tool,
        arguments=failed.arguments,
        condition=failed.condition,
        path=failed.path,
    )
    return refuse(code, name, f"{call}: {_cut(failed.message)}", advice, witness=witness)


def _meaning(
    definition: ToolDefinition, failed: Failed, trial: DryRun
) -> tuple[RejectionCode, str]:
    own = failed.tool == definition.name
    match failed.cause:
        case "no_stub":
            return trial.lacking(failed.tool)
        case "precondition" if own:
            return "precondition", "correct the example, or relax the precondition"
        case "precondition":
            return "child_precondition", (
                f"make sure that {failed.condition!r} holds before {failed.tool!r} is called: test "
                "for it in the program, or promise it as a precondition of your own"
            )
        case "postcondition" if own:
            return "postcondition", "correct the program, or promise less"
        case "postcondition":
            return "child_postcondition", (
                f"{failed.tool!r} itself is at fault; repair it before building on it"
            )
        case "error":
            return "run_failed", (
                "correct the program for these arguments, or take the example out and say in a "
                "precondition that they are not allowed"
            )


def _check_fit(definition: ToolDefinition, example: Example) -> None:
    found = validate_arguments(definition, example.arguments)
    if found:
        raise refuse(
            "bad_example",
            definition.name,
            f"the worked call {call_text(definition.name, example.arguments)} does not fit the "
            f"parameters: {found[0].rule}",
            "correct the example, or the parameter's type",
            witness=_witness(definition.name, example.arguments, example.result),
        )


def call_text(name: str, arguments: JsonObject) -> str:
    """A call as it is written in Python, cut when it is long."""
    return _cut(f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})")


def _witness(tool: str, arguments: JsonObject, expected: Any, got: Any = None) -> Witness:
    return Witness(tool=tool, arguments=dict(arguments), expected=expected, got=got)


def _text(value: Any) -> str:
    return _cut(json.dumps(value, ensure_ascii=False, default=repr))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\u2026"
