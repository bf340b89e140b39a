"""What was decided stays decided: a change that was taken back is not made again by itself.

A proposal is known by the revision that it changes. Once the tool has learned something else, the
same change is another proposal, and so is the same rule with its values in another order, beside
another rule, or from somebody else. So changes are compared by what they add.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from agentkit.evolution.model_view import ModelView, view_changes
from agentkit.evolution.proposals.evidence.rule_of import rule_key
from agentkit.evolution.proposals.proposal import Proposal
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import CallBefore, Condition, Requires, Rule

if TYPE_CHECKING:
    from agentkit.evolution.lifecycle.ledger import Ledger
    from agentkit.evolution.lifecycle.record import ProposalRecord

Revision: TypeAlias = Callable[[str, str], ToolDefinition | None]
"""An earlier definition of a tool by name and digest; None when there is none."""

_WORD = re.compile(r"[A-Za-z_]\w*")


def decided_before(ledger: Ledger, revision: Revision, proposal: Proposal) -> ProposalRecord | None:
    """The last proposal that brought all of a change and was taken back, or rejected by a person.

    Args:
        ledger: Of the library.
        revision: Finds earlier definitions.
        proposal: A suggestion of a proposer.

    Returns:
        None where something in the change is new, or nobody said no to it.
    """
    for record, refused in _refused(ledger, revision, proposal):
        change = _additions(revision, proposal)
        if change and change <= _additions(revision, refused):
            return record
    return None


def brings_back(ledger: Ledger, revision: Revision, proposal: Proposal) -> bool:
    """Whether a change brings back some of what was taken back, so that a person must agree.

    That is a text or a rule of it, whoever says so now and whatever stands beside it; and another
    rule about the same: a longer list, a bound where a list was.

    Args:
        ledger: Of the library.
        revision: Finds earlier definitions.
        proposal: A suggestion. What a person suggests brings nothing back by itself.
    """
    if proposal.author.kind == "person":
        return False
    for _, refused in _refused(ledger, revision, proposal):
        if _additions(revision, proposal) & _additions(revision, refused):
            return True
        if _subjects(revision, proposal) & _subjects(revision, refused):
            return True
    return False


def _refused(
    ledger: Ledger, revision: Revision, proposal: Proposal
) -> Iterator[tuple[ProposalRecord, Proposal]]:
    """The proposals about the same tool that somebody said no to, the last first."""
    try:
        _additions(revision, proposal)
        _subjects(revision, proposal)
    except (AttributeError, TypeError, ValueError):  # no definition; the checks say what is wrong
        return
    for record in reversed([*ledger.proposals.values()]):
        said, is_same_tool = record.proposal, record.tool_name == proposal.tool_name
        is_other = record.proposal_id != proposal.proposal_id
        if said is not None and is_same_tool and is_other and _is_refused(record):
            yield record, said


def _is_refused(record: ProposalRecord) -> bool:
    if record.state == "rolled_back":
        return True
    return record.state == "rejected" and record.rejection.author.kind == "person"


def _additions(revision: Revision, proposal: Proposal) -> frozenset[tuple[str, str, str]]:
    """What comes: texts line by line with place and kind, and rules by what they say."""
    base = _base(revision, proposal)
    texts = (
        (one.place, one.keyword, line)
        for one in view_changes(_words(base), _words(proposal.candidate))
        for line in set(one.after.splitlines()) - set(one.before.splitlines())
    )
    rules = (("", "rule", rule_key(rule)) for rule in _new_rules(base, proposal.candidate))
    return frozenset((*texts, *rules))


def _subjects(revision: Revision, proposal: Proposal) -> frozenset[tuple[str, ...]]:
    """What new rules are about: the value of a parameter, a tool that must be called first."""
    rules = _new_rules(_base(revision, proposal), proposal.candidate)
    names = tuple(proposal.candidate.signature.properties)
    return frozenset(about for rule in rules for about in _about(rule, names))


def _about(rule: Rule, names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    match rule:
        case CallBefore():
            yield ("call_before", rule.tool)
        case Requires():
            yield ("requires", rule.parameter)
        case Condition():
            read = set(_WORD.findall(rule.expression))
            yield from (("value", name) for name in names if name in read)
        case _:
            yield ("value", rule.parameter)


def _new_rules(base: ToolDefinition | None, candidate: ToolDefinition) -> list[Rule]:
    had = () if base is None else base.specification.rules
    known = set(map(rule_key, had))
    return [rule for rule in candidate.specification.rules if rule_key(rule) not in known]


def _base(revision: Revision, proposal: Proposal) -> ToolDefinition | None:
    return revision(proposal.tool_name, proposal.base) if proposal.base else None


def _words(definition: ToolDefinition | None) -> ModelView | None:
    """What a model sees, but for the learned rules, which are compared by what they say."""
    if definition is None:
        return None
    bare = replace(definition.specification, rules=())
    return ModelView.of(replace(definition, specification=bare))
