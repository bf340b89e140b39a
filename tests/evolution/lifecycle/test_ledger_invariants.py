"""What holds whatever happens: invariants of the ledger, several writers, and taking back."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from support.episodes import episode_of
from support.unreliable_store import UnreliableStore

from agentkit import ToolDefinition, open_store, tool
from agentkit.episodes import Verdict
from agentkit.errors import StaleVersionError, StoreError, StoreFormatError, UsageError
from agentkit.evolution import ToolManager
from agentkit.evolution.checker import Judgement
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.gates import GateReport
from agentkit.evolution.ledger import EXPERIMENTS, Ledger
from agentkit.evolution.proposal import NEXT, Proposal
from agentkit.evolution.validation.report import FailedCheck, ValidationReport
from agentkit.library import LibraryChange
from agentkit.library.chain import verify_chain, verify_library
from agentkit.library.events import Author, EventDraft, chained
from agentkit.library.pins import pin_faults
from agentkit.testing import primitive_library
from agentkit.tools.definition import Description, Example

ADA = Author(kind="person", name="ada")
JUDGE = Author(kind="model", name="judge")
TOOLS = ("read", "pay")
BAD = FailedCheck(code="bad", layer="lexical", message="bad", advice="-")


WORDED = replace(BAD, code="other_tool", layer="lexical", excerpt="wrong")


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
        policies = [LifecyclePolicy(shadow=True, canary=True), LifecyclePolicy(evidence="none")]
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
                base, candidate, stream="feedback", author=Author(kind="model", name=author)
            )
        )

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


TestLifeCycle = LifeCycle.TestCase
TestLifeCycle.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)


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


# --- A store that fails in the middle leaves all of a step or nothing, and the manager goes o ----


STEPS = ("submit", "approve", "advance", "roll_back", "pin", "unpin")
KINDS = {
    "submit": ["proposed", "validated"],
    "approve": ["approved"],
    "advance": ["active"],
    "roll_back": ["rolled_back"],
    "pin": ["pinned"],
    "unpin": ["unpinned"],
}


@pytest.fixture
def walk(make_manager, propose, ada):
    """A manager over an unreliable store, and the steps of one proposal by name."""

    def make(store):
        manager = make_manager(over=store)
        proposal = propose(manager)
        steps = {
            "submit": lambda: manager.submit(proposal),
            "approve": lambda: manager.approve(proposal.proposal_id, person=ada),
            "advance": lambda: manager.advance(proposal.proposal_id),
            "roll_back": lambda: manager.roll_back(proposal.proposal_id),
            "pin": lambda: manager.pin(1),
            "unpin": manager.unpin,
        }
        return manager, steps

    return make


def kinds(store):
    """The kinds of all events after the first, which registers the tools."""
    return [event.kind for event in store.events()][1:]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("fault", ["refused", "unanswered"])
def test_a_step_that_fails_is_made_once_when_it_is_repeated(walk, store, step, fault):
    """Whether the store failed before or after it wrote, repeating the step makes it once."""
    at = STEPS.index(step)
    unreliable = UnreliableStore(store, [None] * (at + 1) + [fault])
    _, steps = walk(unreliable)
    for name in STEPS[:at]:
        steps[name]()
    before, version = kinds(store), store.load().version
    with pytest.raises(StoreError, match="connection was lost"):
        steps[step]()
    written = KINDS[step] if fault == "unanswered" else []
    assert kinds(store) == before + written
    if not written:
        assert store.load().version == version
    steps[step]()
    assert kinds(store) == before + KINDS[step]
    assert unreliable.met[fault] == 1
    assert not verify_chain(store.events())


def test_one_that_is_always_late_gives_up(walk, store):
    """After so many attempts the error says so, and nothing was written."""
    unreliable = UnreliableStore(store, [None, *["late"] * 100])
    _, steps = walk(unreliable)
    with pytest.raises(StaleVersionError):
        steps["submit"]()
    assert kinds(store) == []
    assert steps["submit"]().state == "validated"


def test_an_id_that_another_change_has(manager, store, propose):
    """A proposal whose id a change of another kind took is not taken for promoted."""
    change = LibraryChange(proposal_id="taken", upserts=(ToolDefinition(name="other"),))
    manager.edit(lambda _library: change)
    manager.submit(replace(propose(manager), proposal_id="taken"))
    with pytest.raises(StoreError, match="'taken' that was another one"):
        manager.advance()
    assert manager.ledger.proposals["taken"].state == "validated"
    assert store.load()["add"].definition == primitive_library()["add"].definition


# --- What was promoted is taken back by giving the tool the definition that it had before --------


@pytest.fixture
def promote(manager, propose):
    """Promotes a summary of a tool, and gives the proposal's id."""

    def make(summary, name="add"):
        record = manager.submit(propose(manager, name, summary))
        manager.advance(record.proposal_id)
        return record.proposal_id

    return make


def states(manager):
    """The state of each proposal, in order."""
    return [record.state for record in manager.ledger.proposals.values()]


def summary(library, name="add"):
    """What a library says of a tool."""
    return library[name].definition.description.summary


def test_what_was_built_on_it_goes_too(manager, store, promote, ada):
    """Taking back an earlier proposal takes back all that became active after it."""
    original = summary(store.load())
    ids = [promote(f"Add two numbers, {number}.") for number in "abc"]
    assert manager.roll_back(ids[1], author=ada, reason="wrong") == (ids[2], ids[1])
    assert summary(store.load()) == "Add two numbers, a."
    assert states(manager) == ["superseded", "rolled_back", "rolled_back"]
    assert [revision.author for revision in store.history("add")][-1] == "ada"
    assert manager.roll_back(ids[0]) == (ids[0],)
    assert summary(store.load()) == original
    assert not verify_library(store, store.events())


def test_restoring_a_version_takes_back_what_came_since(manager, store, promote):
    """Going back to a library version rolls back the promotions after it, and no others."""
    original = summary(store.load())
    promote("Add two numbers, once.")
    promote("Add two numbers, twice.")
    manager.restore("add", to_version=2)
    assert states(manager) == ["superseded", "rolled_back"]
    assert summary(store.load()) == "Add two numbers, once."
    manager.restore("add", to_version=1)
    assert states(manager) == ["rolled_back", "rolled_back"]
    assert summary(store.load()) == original
    with pytest.raises(StoreError, match="already is as it was"):
        manager.restore("add", to_version=1)


# --- A pin lets runs use one version whatever happens to the library -----------------------------


TOTAL = '''
@composite(examples=[{"arguments": {"a": 1, "b": 2}, "result": 4}])
def one_more(a: float, b: float) -> float:
    """One more than a sum."""
    return add(add(a, b), 1)
'''


def test_the_whole_library_is_pinned(manager, store, promote):
    """Runs use that version, with its code, until it is unpinned; the library goes on."""
    original = summary(manager.library)
    promote("Add two numbers, once.")
    served = manager.pin(1, reason="complaints")
    assert (served.version, summary(served)) == (1, original)
    assert served["add"](a=1, b=2) == 3
    assert manager.library.version == 2
    assert summary(manager.unpin()) == "Add two numbers, once."
    assert [event.kind for event in store.events()][-2:] == ["pinned", "unpinned"]


def test_one_tool_is_pinned(manager, promote):
    """The pinned tool has its old words; others go on; composites above run on it."""
    original = summary(manager.library)
    manager.insert(TOTAL)
    promote("Add two numbers, once.")
    served = manager.pin(2, "add")
    promote("Multiply two numbers, and no more.", "mul")
    served = manager.served
    assert summary(served) == original
    assert summary(served, "mul") == "Multiply two numbers, and no more."
    assert not pin_faults(served)
    assert served["one_more"](a=1, b=2) == 4


# --- Every other write of the manager is an event too, in the same change ------------------------


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


def written(store):
    """The operations of all writes outside of proposals, in order."""
    return [event.facts["operation"] for event in store.events() if event.kind == "written"]


def test_each_writer_tells(make_manager, store):
    """register, record, learn, insert, edit and restore leave one event each, with its digests."""
    manager = make_manager(weather)
    manager.record({"weather": [Example(arguments={"city": "Oslo"}, result="rain")]})
    lesson = episode_of(("weather", {"city": "Rome"}, "sunny"), request="Umbrella?")
    manager.learn([replace(lesson, verdict=Verdict(passed=True))])
    manager.insert(TOTAL)
    ping = ToolDefinition(name="ping")
    manager.edit(
        lambda _held: LibraryChange(proposal_id="ping", upserts=(ping,)), operation="import"
    )
    manager.restore("weather", to_version=1)
    assert written(store) == ["register", "record", "learn", "insert", "import", "rollback"]
    assert not verify_chain(store.events())
    assert not verify_library(store, store.events())
    assert [event.library_version for event in store.events()] == [1, 2, 3, 4, 5, 6]


def test_a_persons_replacement_supersedes(manager, store, propose, ada):
    """Other words by a person supersede the proposal that served; new pins alone do not."""
    record = manager.submit(propose(manager))
    manager.advance()
    person = ToolManager(store, author=ada)
    same = manager.library["add"].definition
    pinned = replace(same, examples=())
    person.edit(lambda _held: LibraryChange(proposal_id="1", upserts=(pinned,)))
    assert person.ledger.proposals[record.proposal_id].state == "active"
    other = replace(same, description=Description(summary="Sum."))
    person.edit(lambda _held: LibraryChange(proposal_id="2", upserts=(other,)))
    assert person.ledger.proposals[record.proposal_id].state == "superseded"
    assert store.events()[-1].author == ada


def test_a_pinned_tool_that_is_gone_stays_gone(manager):
    """A pin gives a tool earlier words, and brings no tool back."""
    manager.pin(1, "neg")
    gone = LibraryChange(proposal_id="gone", removals=("neg",))
    manager.edit(lambda _library: gone)
    assert "neg" not in manager.served
    assert "add" in manager.served
