"""What promoted changes are worth on later traffic, and which are proposed for removal."""

import asyncio
import random
from dataclasses import replace

import pytest
from support.episodes import episode_of

from agentkit import ToolDefinition, open_store
from agentkit.episodes import Evidence, Verdict
from agentkit.evolution import (
    LifecyclePolicy,
    Observations,
    ToolManager,
    WorthProposer,
    evolve,
    worth_of,
)
from agentkit.evolution.gates import GateConfig, GateReport
from agentkit.evolution.proposal import Proposal
from agentkit.evolution.review import review_of
from agentkit.evolution.worth import has_stopped_helping
from agentkit.library.events import Author
from agentkit.messages import ToolFailure
from agentkit.tools.rules import Between, OneOf

SCHEMA = {"properties": {"periods": {"type": "integer"}, "euro": {"type": "number"}}}
LOAN = ToolDefinition.from_schema("loan", "What a loan costs a month.", SCHEMA)
TERMS = OneOf(parameter="periods", values=(36, 48, 60))
ADA = Author(kind="person", name="ada")


def suggested(manager, *rules, **about):
    """A proposal of other rules of the tool."""
    base = manager.library["loan"].definition
    changed = replace(base, specification=replace(base.specification, rules=rules))
    about = {"stream": "evidence", "author": Author(kind="program", name="evidence"), **about}
    record = manager.submit(Proposal.of(base, changed, **about))
    assert record.is_open, record.failed
    return record


def promoted(manager, *rules, **about):
    """Promote other rules of the tool; the id of the proposal."""
    name = suggested(manager, *rules, **about).proposal_id
    manager.approve(name, person=ADA)
    manager.advance_until(name)
    assert manager.ledger.proposals[name].state == "active"
    return name


def episode(number, version, *, wrong, tool="loan", path="periods", **more):
    """A conversation with one call of a tool, which was refused or taken."""
    failure = ToolFailure(kind="invalid_arguments", rule="no such term", path=path)
    return episode_of(
        (tool, {"periods": 30}, failure if wrong else None),
        episode_id=f"{version}-{number:05}",
        request="A loan, please.",
        library_version=version,
        started_at=f"2026-11-{version:02}T10:00:00.{number:05}",
        **more,
    )


def traffic(version, wrong, right, *, start=0, **more):
    """Conversations with one library version, those that went wrong first."""
    return [episode(start + at, version, wrong=at < wrong, **more) for at in range(wrong + right)]


@pytest.fixture
def manager():
    """A manager of a library with one tool."""
    made = ToolManager(open_store("memory:"))
    made.register([LOAN])
    return made


def test_a_change_is_held_against_the_traffic_before_it_and_says_so(manager):
    """The gain comes with an interval, and with the words that it is no comparison."""
    name = promoted(manager, TERMS)
    lived = [*traffic(1, 40, 60), *traffic(2, 5, 95)]
    found = worth_of(name, manager.ledger, manager.revision, lived)
    assert (found.against, found.control_wrong, found.later_wrong) == ("before", 40, 5)
    assert found.parameters == ("periods",)
    assert found.gain.value == pytest.approx(0.35)
    assert 0.2 < found.gain.low < 0.35 < found.gain.high < 0.5
    assert str(found) == (
        "wrong or refused calls at periods in 5 of 100 conversations since, 40 of 100 before it: "
        "+35.0 points gained (+24.0 to +45.2) (before and after, not a comparison)"
    )


def test_no_later_traffic_is_no_worth_rather_than_none(manager):
    """Nothing is known of a change that nobody used, or that nothing can be held against."""
    name = promoted(manager, TERMS)
    for lived in ([], traffic(1, 4, 4), traffic(2, 4, 4)):
        assert worth_of(name, manager.ledger, manager.revision, lived) is None
    waiting = suggested(manager, Between(parameter="euro", minimum=1))
    lived = [*traffic(1, 4, 4), *traffic(2, 4, 4)]
    assert worth_of(waiting.proposal_id, manager.ledger, manager.revision, lived) is None


def test_only_what_the_change_is_about_counts(manager):
    """Wrong calls at other parameters, probes, and what users never saw say nothing of it."""
    name = promoted(manager, TERMS)
    elsewhere = [*traffic(1, 9, 9, path="euro"), *traffic(2, 9, 9, path="euro")]
    aside = [
        *traffic(2, 9, 0, start=100, metadata={"probe_of": "loan"}),
        *traffic(2, 9, 0, start=200, metadata={"imported": "them.jsonl"}),
        *traffic(2, 9, 0, start=300, metadata={"shadow_of": "x"}),
        *traffic(2, 9, 0, start=400, tool="other"),
        *traffic(0, 9, 0, start=500),
    ]
    found = worth_of(name, manager.ledger, manager.revision, [*elsewhere, *aside])
    assert (found.control_wrong, found.later_wrong) == (0, 0)
    assert (found.control, found.later) == (18, 18)
    blamed = Evidence(kind="wrong_value", message="", tool="loan", parameter="periods")
    judged = episode(0, 2, wrong=False, verdict=Verdict(passed=False, evidence=(blamed,)))
    found = worth_of(name, manager.ledger, manager.revision, [*traffic(1, 1, 1), judged])
    assert found.later_wrong == 1


def test_a_conversation_counts_once(manager):
    """Later turns of one conversation depend on the first."""
    name = promoted(manager, TERMS)
    lived = [*traffic(1, 2, 2), *traffic(2, 3, 3, session_id="one")]
    found = worth_of(name, manager.ledger, manager.revision, lived)
    assert (found.later, found.later_wrong) == (1, 1)


def test_a_canary_is_held_against_its_own_control():
    """Its control is of the time of the trial, and holds no episode that taught the change."""
    store = open_store("memory:")
    manager = ToolManager(store, lifecycle=LifecyclePolicy(canary=True))
    manager.register([LOAN])
    name = suggested(manager, TERMS).proposal_id
    manager.advance_until(name, "canary")
    on_trial = {"experiment": name}
    lived = [
        *traffic(1, 50, 0),
        *traffic(1, 10, 30, start=100, metadata={**on_trial, "arm": "control"}),
        *traffic(1, 0, 40, start=200, metadata={**on_trial, "arm": "candidate"}),
    ]
    assert worth_of(name, manager.ledger, manager.revision, lived) is None
    manager.assess(name, [GateReport(gate="canary", decision="pass", reason="no worse")])
    manager.advance_until(name)
    assert manager.ledger.proposals[name].state == "active"
    lived += traffic(2, 2, 48)
    found = worth_of(name, manager.ledger, manager.revision, lived)
    assert (found.against, found.control, found.control_wrong) == ("canary", 40, 10)
    few = worth_of(name, manager.ledger, manager.revision, lived, rules=GateConfig(min_sessions=41))
    enough = GateConfig(min_sessions=40)
    found = worth_of(name, manager.ledger, manager.revision, lived, rules=enough)
    assert found.against == "canary"
    assert (few.against, few.control, few.control_wrong) == ("before", 90, 60)


def test_a_change_that_ran_in_shadow_is_held_against_the_traffic_beside_it():
    """What was served meanwhile holds none of the episodes that the change was made from."""
    manager = ToolManager(open_store("memory:"), lifecycle=LifecyclePolicy(shadow=True))
    manager.register([LOAN])
    name = suggested(manager, TERMS).proposal_id
    manager.advance_until(name, "shadow")
    begun = manager.ledger.proposals[name].events[-1].at
    manager.assess(name, [GateReport(gate="shadow", decision="pass", reason="better")])
    manager.advance_until(name)
    assert manager.ledger.proposals[name].state == "active"
    beside = [replace(one, started_at=begun) for one in traffic(1, 10, 30, start=100)]
    held_out = [replace(one, started_at=begun) for one in traffic(0, 9, 0)]
    lived = [*traffic(1, 50, 0), *beside, *held_out, *traffic(2, 1, 49)]
    found = worth_of(name, manager.ledger, manager.revision, lived)
    assert (found.against, found.control, found.control_wrong) == ("shadow", 40, 10)
    assert "10 of 40 while it ran in shadow" in str(found)


def test_a_later_change_of_something_else_ends_nothing(manager):
    """Two rules about different parameters are worth something side by side."""
    first = promoted(manager, TERMS)
    least = Between(parameter="euro", minimum=1)
    second = promoted(manager, TERMS, least)
    third = promoted(manager, OneOf(parameter="periods", values=(36, 48)), least)
    lived = [one for at in (1, 2, 3, 4) for one in traffic(at, at, 10)]
    of = {
        name: worth_of(name, manager.ledger, manager.revision, lived)
        for name in (first, second, third)
    }
    assert (of[first].later, of[third].control, of[third].later) == (25, 25, 14)
    assert (of[second].control, of[second].later) == (23, 27)


def removals(manager, lived, **options):
    """What a round proposes to take back."""
    seen = Observations(library=manager.library, episodes=tuple(lived))
    return asyncio.run(WorthProposer(manager, **options).propose(seen))


def test_what_stopped_helping_is_proposed_for_removal_and_waits(manager):
    """The tool began to take other terms, and the rule refuses them: numbers, then a person."""
    name = promoted(manager, TERMS)
    lived = [*traffic(1, 30, 70), *traffic(2, 4, 86), *traffic(2, 70, 30, start=90)]
    outcome = asyncio.run(evolve(manager, [WorthProposer(manager)], episodes=lived))
    [one] = outcome.considered
    assert one.record.is_open
    assert name in one.record.reason
    assert "no longer helps" in one.record.reason
    assert "74 of 190 conversations since, 30 of 100 before it" in one.record.reason
    assert "not a comparison" in one.record.reason
    assert manager.library["loan"].definition.specification.rules == (TERMS,)
    asyncio.run(evolve(manager, [WorthProposer(manager)], episodes=lived))
    assert len(manager.ledger.proposals) == 2  # it is proposed once
    manager.approve(one.record.proposal_id, person=ADA)
    manager.advance_until(one.record.proposal_id)
    assert manager.library["loan"].definition.specification.rules == ()


def test_changes_that_undo_each_other_are_told(manager):
    """A sets, B takes back, A sets again: the reviewer of each reads of the others."""
    first = promoted(manager, TERMS)
    second = promoted(manager)
    assert review_of(manager, first).undoing == ()
    assert review_of(manager, second).undoing[0].startswith(f"takes back what {first} set: ")
    third = promoted(manager, TERMS, stream="person")
    told = review_of(manager, third).undoing
    assert [one.partition(":")[0] for one in told] == [
        f"sets again what {first} set",
        f"takes back what {second} set",
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [(0.4, 0.4), (0.4, 0.38), (0.4, 0.2), (0.05, 0.04), (0.02, 0.02), (0.9, 0.5)],
)
def test_removals_that_are_wrong_keep_the_level_of_the_gates(before, after):
    """Of what helps, or of which nothing can be told, at most alpha is ever proposed."""
    chance, runs, wrong = random.Random(f"{before} {after}"), 400, 0
    for _ in range(runs):
        control = [chance.random() < before for _ in range(chance.choice([40, 150]))]
        later = [chance.random() < after for _ in range(500)]
        wrong += has_stopped_helping(control, later, GateConfig())
    assert wrong / runs <= GateConfig().alpha


def test_a_change_that_lost_all_it_won_is_found_by_its_own_earlier_traffic():
    """Against the control alone nothing could be told."""
    control, good = [True] * 40 + [False] * 60, [False] * 100
    as_before = ([True] * 9 + [False] * 11) * 12
    assert has_stopped_helping(control, [*good, *as_before], GateConfig())
    assert not has_stopped_helping(control, as_before, GateConfig())


def test_a_decline_after_long_help_is_found(manager):
    """Earlier good traffic does not hide that it does harm by now."""
    promoted(manager, TERMS)
    good, bad = traffic(2, 20, 980), traffic(2, 150, 50, start=1_000)
    assert removals(manager, [*traffic(1, 40, 60), *good]) == []
    [found] = removals(manager, [*traffic(1, 40, 60), *good, *bad])
    assert found.author == Author(kind="program", name="worth")
    assert found.candidate == LOAN


def test_what_lost_half_of_its_gain_still_helps(manager):
    """A decline alone is no reason: without the change it would be worse."""
    lived = [*traffic(1, 40, 60), *traffic(2, 0, 200), *traffic(2, 40, 160, start=200)]
    promoted(manager, TERMS)
    assert removals(manager, lived) == []


def test_only_new_failures_are_a_reason_to_look(manager):
    """A round that brings no new wrong call reads no traffic; the next one reads all of it."""
    promoted(manager, TERMS)
    lived = (*traffic(1, 30, 70), *traffic(2, 90, 10))
    asked = []

    def all_of_it(tool):
        asked.append(tool)
        return lived

    def found(seen, fresh):
        told = Observations(library=manager.library, episodes=seen, fresh=frozenset(fresh))
        return asyncio.run(WorthProposer(manager, traffic=all_of_it).propose(told))

    assert found(lived, [lived[-1].episode_id]) == []
    assert asked == []
    assert len(found(lived[150:], [lived[150].episode_id])) == 1
    assert asked == ["loan"]
