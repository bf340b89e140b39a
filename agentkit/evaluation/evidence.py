"""The findings of the metrics as evidence for a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentkit.episodes import Evidence
from agentkit.messages import ToolCall
from agentkit.metrics import AllowedCall, AllowedValuesResult, Mismatch


def allowed_values_evidence(
    result: AllowedValuesResult, calls: Sequence[ToolCall], gold: Sequence[AllowedCall]
) -> Iterator[Evidence]:
    """What keeps calls from being the gold calls, finding by finding.

    Args:
        result: The comparison.
        calls: The calls that were compared.
        gold: The gold calls that they were compared with.
    """
    for missed in result.unmatched:
        name = gold[missed.expected].name
        if missed.nearest is None:
            yield Evidence(kind="missing_call", message=f"{name} was not called", tool=name)
        else:
            call = calls[missed.nearest]
            yield from (_from_mismatch(name, call, mismatch) for mismatch in missed.mismatches)
    explained = {missed.nearest for missed in result.unmatched}
    for at in result.spurious:
        if at not in explained:
            call = calls[at]
            yield Evidence(
                kind="unexpected_call",
                message=f"{call.name} was called and should not have been",
                call_id=call.call_id,
                tool=call.name,
            )


def _from_mismatch(gold_tool: str, call: ToolCall, mismatch: Mismatch) -> Evidence:
    return Evidence(
        kind=mismatch.kind,
        message=f"{gold_tool}: {mismatch}",
        call_id=call.call_id,
        tool=gold_tool,
        parameter=mismatch.argument,
        expected=list(mismatch.allowed) or None,
        actual=mismatch.value,
    )
