"""The bystander gate: requests that belong to other tools still go to them.

A description that promises more draws calls away from its neighbours; their own scores may not show
it for long. Counted are requests for whose answer the changed tool is not needed, with the tools
chosen before and after.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agentkit.evolution.gates.decision import GateReport, GateRules, PairedSelection
from agentkit.evolution.gates.losses import losses_report

NAME = "bystanders"


def bystander_gate(
    selections: Iterable[PairedSelection],
    *,
    tool: str,
    rules: GateRules | None = None,
    once: bool = False,
) -> GateReport:
    """Ask whether other tools keep the requests that belong to them.

    With an ``expected`` selection, a request is lost when the control chose all of it and the
    candidate does not. Without one the control is the standard, and any other choice is a loss:
    nobody knows whether it is a better one, unless the candidate's answer was found right. How
    often a tool was chosen, and in what order, does not matter.

    A model that draws its answers at random chooses otherwise now and then with no change at all;
    where nobody judges, let ``rules.lost_share`` be above that share, or draw greedily.

    Args:
        selections: What was chosen, in the order of time; those that belong to ``tool`` are left
            out.
        tool: Name of the tool whose definition is changed.
        rules: The knobs; ``lost_share`` is the largest share that may be lost.
        once: Whether the requests are a fixed set that is looked at once; it needs fewer.

    Example:
        >>> kept = [PairedSelection(task=str(n), control=("find",), candidate=("find",))
        ...         for n in range(400)]
        >>> robbed = [PairedSelection(task=f"r{n}", control=("find",), candidate=("buy",))
        ...           for n in range(40)]
        >>> bystander_gate(kept, tool="buy").decision
        'pass'
        >>> report = bystander_gate(kept[:100] + robbed, tool="buy")
        >>> report.decision, report.statistics["robbed"]
        ('fail', 40)
    """
    rules = rules or GateRules()
    others = _of_other_tools(selections, tool)
    right = [one for one in others if set(one.expected) <= set(one.control)]
    lost = [is_lost(one) for one in right]
    changed = [one for one in others if set(one.control) != set(one.candidate)]
    gained = [
        one
        for one in others
        if not set(one.expected) <= set(one.control) and set(one.expected) <= set(one.candidate)
    ]
    return losses_report(
        NAME,
        lost,
        what="requests of other tools",
        rules=rules,
        once=once,
        statistics={
            "requests": len(others),
            "changed": len(changed),
            "gained": len(gained),
            "robbed": sum(
                tool in one.candidate and tool not in one.control
                for one, is_gone in zip(right, lost, strict=True)
                if is_gone
            ),
        },
    )


def is_lost(selection: PairedSelection) -> bool:
    """Whether what the control chose rightly is not chosen any more."""
    if selection.accepted:
        return False
    if selection.expected:
        expected = set(selection.expected)
        return expected <= set(selection.control) and not expected <= set(selection.candidate)
    return set(selection.control) != set(selection.candidate)


def _of_other_tools(selections: Iterable[PairedSelection], tool: str) -> Sequence[PairedSelection]:
    """Those that do not belong to the tool; the first of each request."""
    first: dict[str, PairedSelection] = {}
    for one in selections:
        if tool not in (one.expected or one.control):
            first.setdefault(one.task, one)
    return list(first.values())
