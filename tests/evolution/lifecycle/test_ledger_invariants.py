"""Whatever is done in whatever order, the life cycle keeps its promises."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from agentkit import ToolDefinition, open_store
from agentkit.errors import StoreFormatError, UsageError
from agentkit.evolution import ToolManager
from agentkit.evolution.checker import Judgement
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.gates import GateReport
from agentkit.evolution.ledger import EXPERIMENTS, Ledger
from agentkit.evolution.proposal import NEXT, Proposal, UnreadableProposal
from agentkit.evolution.validation.report import FailedCheck, ValidationReport
from agentkit.library import LibraryChange
from agentkit.library.chain import verify_chain, verify_library
from agentkit.library.events import Author, EventDraft, chained
from agentkit.tools.definition import Description

ADA = Author(kind="person", name="ada")
JUDGE = Author(kind="model", name="judge")
TOOLS = ("read", "pay")
BAD = FailedCheck(code="bad", layer="lexical", message="bad", advice="-")


WORDED = replace(BAD, code="value_contradicted", layer="semantic", excerpt="wrong")


def check(change):
    """'bad' and 'wrong' fail, the latter for its wording; changes of ``pay`` need everybody."""
    found = {"bad": (BAD,), "wrong": (WORDED,)}
    failed = found.get(change.candidate.description.summary, ())
    return ValidationReport(
        failed=failed, needs=("judge", "person") if change.base.name == "pay" else ()
    )


class LifeCycle(RuleBasedStateMachine):
    """Two managers over one store, with policies of their own, do all that can be done."""

    def __init__(self):
        super().__init__()
        self.store = open_store("memory:")
        policies = [
            LifecyclePolicy(shadow=True, canary=True),
            LifecyclePolicy(evidence="none"),
        ]
        self.managers = [
            ToolManager(self.store, lifecycle=policy, validate=check) for policy in policies
        ]
        self.managers[0].register([ToolDefinition(name=name) for name in TOOLS])
        self.bases = [tool.definition for tool in self.store.load()]
        self.allowed = {name: {self.store.load()[name].definition.digest} for name in TOOLS}
        self.folded = Ledger()

    def manager(self, which):
        """One of the two, which need not have seen what the other did."""
        return self.managers[which]

    def one(self, data, states):
        """A proposal in one of these states; None when there is none."""
        ledger = Ledger().after(self.store.events())
        found = [r.proposal_id for r in ledger.proposals.values() if r.state in states]
        return data.draw(st.sampled_from(found)) if found else None

    @rule(
        which=st.integers(0, 1),
        at=st.integers(0, 20),
        field=st.sampled_from(["summary", "tags"]),
        word=st.sampled_from(["bad", "wrong", "one", "two", "three"]),
        author=st.sampled_from(["p", "q"]),
    )
    def submit(self, which, at, field, word, author):
        """Suggest a change of some revision, old or new."""
        base = self.bases[at % len(self.bases)]
        value = word if field == "summary" else (word,)
        candidate = replace(base, description=replace(base.description, **{field: value}))
        self.manager(which).submit(
            Proposal.of(
                base,
                candidate,
                stream="feedback",
                author=Author(kind="model", name=author),
            )
        )

    @rule(which=st.integers(0, 1), author=st.sampled_from(["p", "q"]))
    def rubbish(self, which, author):
        """Answer what cannot be read."""
        answer = UnreadableProposal(
            author=Author(kind="model", name=author),
            stream="feedback",
            tool_name="read",
            text="?",
            failed=(BAD,),
        )
        self.manager(which).submit(answer)

    @rule(which=st.integers(0, 1), data=st.data(), deed=st.sampled_from("ajnrx"))
    def decide(self, which, data, deed):
        """Approve, judge with yes or no, reject, or report from a gate."""
        found = self.one(data, {"proposed", "validated", "shadow", "canary"})
        if found is None:
            return
        manager = self.manager(which)
        if deed == "a":
            manager.approve(found, person=ADA)
        elif deed in "jn":
            manager.judge(found, Judgement(agrees=deed == "j", reason="so", author=JUDGE))
        elif deed == "r":
            manager.reject(found, person=ADA, reason="no")
        elif manager.refresh() and manager.ledger.proposals[found].state != "proposed":
            decision = data.draw(st.sampled_from(["pass", "pass", "wait", "fail"]))
            manager.assess(found, [GateReport(gate="g", decision=decision, reason="so")])

    @rule(which=st.integers(0, 1))
    def advance(self, which):
        """Bring all on that can go on."""
        self.manager(which).advance()

    @rule(which=st.integers(0, 1), data=st.data())
    def roll_back(self, which, data):
        """Take something back that is there to be taken back."""
        found = self.one(data, {"active", "superseded", "canary"})
        if found is None:
            return
        with contextlib.suppress(UsageError):  # a person wrote over it
            self.manager(which).roll_back(found)

    @rule(which=st.integers(0, 1), name=st.sampled_from(TOOLS), word=st.sampled_from("xyz"))
    def edit(self, which, name, word):
        """A person writes other words."""

        def build(library):
            held = library[name].definition
            mine = replace(held, description=Description(summary=word))
            self.allowed[name].add(mine.digest)
            number = len(self.store.events())
            return LibraryChange(proposal_id=f"edit-{number}", upserts=(mine,))

        self.manager(which).edit(build)

    @rule(which=st.integers(0, 1), name=st.sampled_from(("", *TOOLS)), is_pin=st.booleans())
    def pin(self, which, name, is_pin):
        """Pin or unpin."""
        manager = self.manager(which)
        if is_pin:
            manager.pin(1, name)
        elif name in manager.ledger.pins:
            manager.unpin(name)

    @invariant()
    def all_promises_hold(self):
        """Each of those below, in this order."""
        self.the_ledger_is_the_fold_of_the_chain()
        self.only_allowed_steps_happen()
        self.one_experiment_a_tool()
        self.who_serves_was_there_before_or_was_promoted_or_given()
        self.the_active_proposal_is_what_serves()
        self.nobody_passes_who_must_wait()
        self.nothing_comes_back()

    def the_ledger_is_the_fold_of_the_chain(self):
        """Folded at once or step by step, and by either manager, it is the same ledger."""
        events = self.store.events()
        self.folded = self.folded.after(self.store.events(after=self.folded.sequence))
        assert self.folded == Ledger().after(events)
        for manager in self.managers:
            manager.refresh()
            assert manager.ledger == self.folded
        assert not verify_chain(events)
        assert not verify_library(self.store, events)

    def only_allowed_steps_happen(self):
        """Each proposal goes from state to state as ``NEXT`` says."""
        at = {}
        for event in self.store.events():
            if event.kind in NEXT:
                before = at.get(event.proposal_id)
                assert (event.kind in NEXT[before]) if before else event.kind == "proposed"
                at[event.proposal_id] = event.kind
        assert at == {name: record.state for name, record in self.folded.proposals.items()}

    def one_experiment_a_tool(self):
        """At most one proposal of a tool is in shadow or canary, and the ledger knows which."""
        tried = [r for r in self.folded.proposals.values() if r.state in EXPERIMENTS]
        assert len({record.tool_name for record in tried}) == len(tried)
        assert self.folded.experiments == {r.tool_name: r.proposal_id for r in tried}

    def who_serves_was_there_before_or_was_promoted_or_given(self):
        """A tool's definition is one that it had, a promoted candidate, or a person's."""
        for event in self.store.events():
            if event.kind == "active":
                self.allowed[event.tool_name].add(event.digest_after)
        for name in TOOLS:
            held = self.store.load()[name].definition
            assert held.digest in self.allowed[name]
            if held not in self.bases:
                self.bases.append(held)

    def the_active_proposal_is_what_serves(self):
        """At most one proposal is active on a tool, and its candidate is what the tool is."""
        active = [r for r in self.folded.proposals.values() if r.state == "active"]
        assert len({record.tool_name for record in active}) == len(active)
        for record in active:
            assert self.folded.active(record.tool_name) == record
            held = self.store.load()[record.tool_name].definition
            assert record.activation.digest_after == held.digest

    def nobody_passes_who_must_wait(self):
        """What needs a judge and a person is never further than proposed without both."""
        for record in self.folded.proposals.values():
            if record.awaits:
                assert record.state in {"proposed", "rejected"}

    def nothing_comes_back(self):
        """A rejected proposal is not open again."""
        for record in self.folded.proposals.values():
            assert [event.kind for event in record.events].count("proposed") == 1


LifeCycle.TestCase.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)


def event(kind, **parts):
    """An event that is the first of a chain."""
    (made,) = chained(
        None, [EventDraft(kind=kind, author=ADA, **parts)], at="2026-11-21T00:00:00+00:00"
    )
    return made


def test_a_kind_of_a_newer_agentkit():
    """An event of a kind that is not known is refused, with what to do."""
    with pytest.raises(StoreFormatError, match="upgrade"):
        Ledger().after([replace(event("pinned", facts={"version": 1}), kind="celebrated")])


def test_a_chain_with_a_gap():
    """Events that do not follow each other are refused."""
    first = event("pinned", facts={"version": 1})
    with pytest.raises(StoreFormatError, match="log --verify"):
        Ledger().after([first, first])


def told(*kinds, **facts):
    """Events about proposals of one tool: each kind with the id of its proposal."""
    drafts = [
        EventDraft(kind=kind, author=ADA, proposal_id=which, tool_name="read", facts=facts)
        for kind, which in kinds
    ]
    return chained(None, drafts, at="2026-11-21T00:00:00+00:00")


@pytest.mark.parametrize(
    ("between", "failed"), [((), []), (("approved",), []), (("overruled",), [BAD, WORDED])]
)
def test_a_rejected_proposal_that_is_open_again_without_a_person(between, failed):
    """A chain in which it comes back, though nobody overruled all that it failed, is refused."""
    facts = {"failed": [one.to_json() for one in failed], "overruled": [WORDED.to_json()]}
    kinds = ("proposed", "rejected", *between, "proposed")
    with pytest.raises(StoreFormatError, match="nobody overruled"):
        Ledger().after(told(*((kind, "p") for kind in kinds), by="person", **facts))


def test_a_state_that_may_not_follow():
    """A chain in which a proposal skips its checks is refused."""
    with pytest.raises(StoreFormatError, match="is proposed"):
        Ledger().after(told(("proposed", "p"), ("active", "p")))


def test_two_experiments_on_one_tool():
    """A chain in which two proposals are tried on one tool at once is refused."""
    kinds = [(kind, which) for which in "pq" for kind in ("proposed", "validated", "canary")]
    with pytest.raises(StoreFormatError, match="would be tried beside 'p'"):
        Ledger().after(told(*kinds))
