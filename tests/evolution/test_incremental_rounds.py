"""Incremental rounds: they propose what a full round would, and read what is new."""

import asyncio
import os
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from support.episodes import episode_of

from agentkit import ToolDefinition, open_store
from agentkit.episodes import Evidence, Verdict
from agentkit.episodes.labels import as_imported
from agentkit.evolution import ToolManager, incremental
from agentkit.evolution.incremental import EpisodePlace, RoundCursor, read_round
from agentkit.evolution.mining import MiningConfig
from agentkit.evolution.observers import judged
from agentkit.evolution.proposers.evidence import EvidenceProposer
from agentkit.evolution.proposers.observed import with_rule
from agentkit.evolution.proposers.streams import EvolutionStream
from agentkit.evolution.round import evolve
from agentkit.library.copying import copy_store
from agentkit.library.events import Author
from agentkit.library.store import EpisodeFilter, Retention
from agentkit.tools.definition import Effects
from agentkit.tools.rules import OneOf

ANN = Author(kind="person", name="ann")


def tool(name, parameters, effects=("reads",)):
    """A tool whose code is somewhere else."""
    schema = {"properties": {one: {"type": kind} for one, kind in parameters.items()}}
    return ToolDefinition.from_schema(
        name, f"What {name} does.", schema, effects=Effects.of(effects)
    )


OPEN = ToolDefinition.from_schema("rate", "The rate.", {"properties": {"of": {}}})
TOOLS = [
    tool("find", {"name": "string"}),
    tool("loan", {"periods": "integer", "code": "string"}),
    tool("book", {"periods": "integer"}),
    OPEN,
]


@pytest.fixture
def store():
    """An empty store."""
    return open_store("memory:")


@pytest.fixture
def manager(store):
    """A manager of the tools in the store."""
    made = ToolManager(store)
    made.register(TOOLS)
    return made


def called(number, *steps, request="A loan, please.", passed=None, **more):
    """An episode of calls, each with its arguments and its value or the words of a refusal."""
    said = [
        (name, given, f"!{value}" if isinstance(value, str) and "must" in value else value)
        for name, given, value in steps
    ]
    return episode_of(
        *said,
        episode_id=f"e{number:04}",
        request=request,
        stop_reason="finished",
        verdict=None if passed is None else Verdict(passed=passed, score=float(passed)),
        **more,
    )


def refusing(number, name, periods):
    """A call that is refused for its term, in words that name the right ones."""
    rule = f"periods must be one of 36, 48, 60, got {periods}"
    return called(number, (name, {"periods": periods}, rule), passed=False)


def blamed(episode):
    """A verdict that calls the first call of an episode wrong."""
    call = episode.calls[0]
    [name] = [*call.arguments][:1]
    wrong = Evidence(
        kind="wrong_value",
        message="wrong",
        turn=0,
        call_id=call.call_id,
        tool=call.name,
        parameter=name,
        expected=60 if name == "periods" else "C-9999",
    )
    return Verdict(passed=False, evidence=(wrong,))


def lived(number, kind, name="loan", periods=30):
    """One of many things that happen."""
    code = f"C-{number:04}"
    match kind:
        case "refused":
            made = refusing(number, name, periods)
        case "taken":
            made = called(number, (name, {"periods": periods}, 9), passed=True)
        case "asked":
            made = called(number, (name, {"periods": 36}, "'currency' must be given"))
        case "given":
            made = called(number, (name, {"periods": 36, "currency": "EUR"}, 9), passed=True)
        case "open":
            made = called(number, ("rate", {"of": periods}, 3), passed=True)
        case "other name":
            made = replace(refusing(number, "loan", periods), library_names={"loan": "book"})
        case "imported":
            made = as_imported(refusing(number, name, periods), "theirs.jsonl")
        case "looked up":
            steps = (
                ("find", {"name": f"thing {number}"}, {"code": code}),
                ("loan", {"code": code}, 1),
            )
            made = called(number, *steps, request=f"Order thing {number}.", passed=True)
        case "guessed":
            made = called(number, ("loan", {"code": f"X-{number:04}"}, 1))
        case _:
            made = called(number, ("loan", {"code": f"X-{number:04}"}, 1))
            made = replace(made, verdict=blamed(made))
    return made


KINDS = [
    *("refused", "taken", "asked", "given", "open"),
    *("other name", "imported", "looked up", "guessed", "wrong"),
]
HAPPENS = st.tuples(
    st.sampled_from(KINDS), st.sampled_from(["loan", "book"]), st.sampled_from([30, 31, 36, 40.5])
)
LATER = st.tuples(st.just("judged"), st.integers(0, 30), st.booleans())
"""A verdict that comes later, about an episode of any batch before."""


def place(store):
    """A store as rounds read it."""
    return EpisodePlace(name="here", store=store, taken=lambda one: one)


def round_of(manager, store, cursor=None):
    """Make a round; its proposals, and the cursor of the next one."""
    reading = read_round([place(store)], manager.refresh(), cursor)
    proposers = [EvidenceProposer(), EvolutionStream()]
    done = evolve(
        manager,
        proposers,
        episodes=reading.episodes,
        reading=reading,
        mining=MiningConfig(min_support=2),
        learning=True,
    )
    report = asyncio.run(done)
    found = sorted(manager.ledger.proposals.items())
    return [(name, one.state, one.reason) for name, one in found], reading, report


def keep(store, at, batch):
    """Keep a batch; a verdict is about an episode that was kept before."""
    for number, (kind, *more) in enumerate(batch, start=at):
        before = [one for one in store.select(EpisodeFilter(oldest_first=True)) if one.turns]
        if kind != "judged":
            store.append(lived(number, kind, *more))
        elif before:
            which = before[more[0] % len(before)]
            verdict = Verdict(passed=True, score=1.0) if more[1] else blamed(which)
            store.append(replace(judged(which, verdict), episode_id=f"e{number:04}"))


def both(manager, store, cursor):
    """An incremental round, after a full one on a copy; what each proposed, and the cursor."""
    copy = open_store("memory:")
    copy_store(store, copy)
    full, _, _ = round_of(ToolManager(copy), copy)
    found, reading, _ = round_of(manager, store, cursor)
    return found, full, reading.cursor


@pytest.mark.timeout(3600)
@given(
    batches=st.lists(st.lists(HAPPENS | LATER, min_size=4, max_size=12), min_size=2, max_size=3),
    bounds=st.sampled_from([(2_000, 2_000), (3, 5)]),
    agreed=st.booleans(),
)
def test_an_incremental_round_proposes_what_a_full_one_does(batches, bounds, agreed):
    """Whatever the batches: the same proposals, in the same states and words, on the same library."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(incremental, "MOST_OF_TOOL", bounds[0])
        patch.setattr(incremental, "MOST_RECENT", bounds[1])
        store = open_store("memory:")
        manager = ToolManager(store)
        manager.register(TOOLS)
        cursor, at = None, 0
        for batch in batches:
            keep(store, at, batch)
            at += len(batch)
            found, full, cursor = both(manager, store, cursor)
            assert found == full
            waiting = [name for name, state, _ in found if state in {"proposed", "validated"}]
            if agreed and waiting:  # what is promoted changes what the next rounds look at
                manager.approve(waiting[0], person=ANN)
                manager.advance(waiting[0])


FILL = [("open",)] * 3
RULED = with_rule(TOOLS[2], OneOf(parameter="periods", values=(36, 48)))
LISTED = ToolDefinition.from_schema(
    "loan", "What loan does.", {"properties": {"periods": {"enum": [36, 48, 60]}}}
)
TAKEN = ("taken", "book", 36)
NEWS = {
    "a second refusal": ([("refused",)], [("refused",)], {}),
    "a second one under another name": ([("other name",), *FILL], [("refused", "book")], {}),
    "an accepted call of a tool that refused": ([("asked",)], [("given",)] * 2, {}),
    "a composite of old and new": ([("looked up",)] * 2, [("looked up",)] * 2, {"recent": 9}),
    "late verdicts": ([TAKEN] * 2, [("judged", 0, False), ("judged", 1, False)], {"tool": RULED}),
    "an earlier one": (
        [TAKEN, ("judged", 0, False), TAKEN],
        [("judged", 1, False)],
        {"tool": RULED},
    ),
    "a type": ([("open",)], [("open",)], {}),
    "a rule that is broken": ([("taken", "book")], [("taken", "book")], {"tool": RULED}),
    "a definition that changed": ([("refused",)] * 2, FILL, {"tool": LISTED, "then": TOOLS[1]}),
    "others of the name": ([("refused",), *[("other name",)] * 3], [("refused",)], {"most": 2}),
    "imported ones": ([("refused",), *[("imported",)] * 3], [("refused",)], {"most": 2}),
}


@pytest.mark.parametrize("news", NEWS)
def test_what_teaches_only_together_with_earlier_episodes(news, monkeypatch, store):
    """Each thing that makes a round read earlier episodes brings a proposal, as in a full round."""
    first, second, more = NEWS[news]
    monkeypatch.setattr(incremental, "MOST_OF_TOOL", more.get("most", 2_000))
    monkeypatch.setattr(incremental, "MOST_RECENT", more.get("recent", 1))
    manager = ToolManager(store)
    changed = more.get("tool", TOOLS[0])
    manager.register([changed, *(one for one in TOOLS if one.name != changed.name)])
    keep(store, 0, first)
    before, _, cursor = both(manager, store, None)
    manager.register([more["then"]] if "then" in more else [])
    keep(store, len(first), second)
    found, full, _ = both(manager, store, cursor)
    assert found == full
    assert {one for one, _, _ in found} > {one for one, _, _ in before}


def test_only_the_tools_with_news_are_read_again(monkeypatch, manager, store):
    """Earlier calls of a tool that refused something are read; those that teach nothing are not."""
    monkeypatch.setattr(incremental, "MOST_RECENT", 2)
    keep(store, 0, [("refused", "loan", 30), *[("looked up",)] * 3])
    keep(store, 4, [("refused", "book", 30), *[("taken", "find", 36)] * 9])
    _, first, report = round_of(manager, store)
    assert (len(first.episodes), report.looked_at.episodes, report.looked_at.earlier) == (14, 14, 0)
    keep(store, 14, [("refused", "loan", 31), ("taken", "find", 36)])
    found, second, report = round_of(manager, store, first.cursor)
    assert second.fresh == {"e0014", "e0015"}
    assert set(second.by_tool) == {"loan"}
    assert {one.episode_id for one in second.episodes} == {
        *("e0000", "e0001", "e0002", "e0003"),  # of the loan
        *("e0014", "e0015"),
    }
    assert (report.looked_at.episodes, report.looked_at.earlier) == (2, 4)
    assert [one for _, _, one in found if "2 failed calls" in one]


def test_a_change_is_one_proposal_whatever_its_tool_learned_meanwhile(monkeypatch, manager, store):
    """Examples move the tool and more calls show the parameter; neither brings a second proposal."""
    monkeypatch.setattr(incremental, "MOST_RECENT", 1)
    keep(store, 0, [("refused", "loan", 30), ("refused", "loan", 31), *[("asked", "book")] * 2])
    found, first, _ = round_of(manager, store)
    assert sorted(one.tool_name for one in manager.ledger.proposals.values()) == ["book", "loan"]
    keep(store, 4, [("given", "loan"), ("asked", "book"), ("taken", "loan", 36)])
    _, second, report = round_of(manager, store, first.cursor)
    assert set(report.learned.added) == {"loan"}
    keep(store, 7, [("open",)])
    again, third, _ = round_of(manager, store, second.cursor)
    assert (set(second.by_tool), set(third.by_tool)) == ({"loan", "book"}, {"rate"})
    anew, _, _ = round_of(manager, store)
    assert found == again == anew


def test_a_cursor_that_the_store_does_not_know_reads_everything():
    """As when the newest episodes were pruned, or the file is another one by now."""
    store, other = open_store("memory:"), open_store("memory:")
    manager = ToolManager(store)
    manager.register(TOOLS)
    keep(store, 0, [("refused", "loan", 30), ("refused", "loan", 31)])
    _, first, _ = round_of(manager, store)
    assert read_round([place(store)], manager.library, first.cursor).fresh == frozenset()
    store.prune(Retention(max_count=0))
    keep(store, 5, [("refused", "book", 30)])
    keep(other, 5, [("refused", "book", 30)])
    for kept in (store, other):
        again = read_round([place(kept)], manager.library, first.cursor)
        assert (again.fresh, len(again.episodes), set(again.by_tool)) == (None, 1, {"book"})


def test_the_cursor_knows_which_tasks_were_asked(manager, store):
    """Those that may decide, in episodes of one's own, whichever round read them."""

    def read(number, task, cursor=None, **labels):
        episode = called(number, ("find", {"name": "a"}, 1), metadata={"task": task})
        store.append(as_imported(episode, "x.jsonl") if labels else episode)
        return read_round([place(store)], manager.library, cursor, ["a", "b", "c"]).cursor

    first = read(1, "a")
    later = read(4, "c", read(3, "b", read(2, "else", first), imported=True))
    assert (first.asked, later.asked) == ({"a"}, {"a", "c"})


def test_a_cursor_is_for_rounds_of_its_kind_and_a_broken_file_is_none(tmp_path):
    """Other options have other proposers, which have read nothing yet."""
    path = tmp_path / "library.db.evolved"
    assert RoundCursor.read(path, "a") is None
    cursor = RoundCursor(newest={"here": "e1"}, troubled=frozenset({"loan"}), late={"e2": "e1"})
    cursor.write(path, "a")
    assert RoundCursor.read(path, "a") == cursor
    assert RoundCursor.read(path, "b") is None
    texts = ["{", "[]", '{"key": "a"}', '{"key": "a", "troubled": 3}']
    texts.append(
        '{"key": "a", "newest": [], "tools": {}, "late": {}, "offered": {}, "troubled": [], "asked": []}'
    )
    for text in texts:
        path.write_text(text)
        assert RoundCursor.read(path, "a") is None


@pytest.mark.parametrize("what", ["link", "dangling link", "pipe", "device", "hole", "depth"])
def test_a_cursor_of_a_checkout_leads_nowhere(tmp_path, what):
    """A link, pipe, device, hole or deep file in its place is not read, written or waited for."""
    path, outside = tmp_path / "library.db.evolved", tmp_path / "outside"
    outside.write_text("mine")
    match what:
        case "link" | "dangling link" | "device":
            target = {"link": outside, "device": "/dev/zero"}.get(what, tmp_path / "new")
            path.symlink_to(target)
        case "pipe":
            os.mkfifo(path)
        case "hole":
            with path.open("wb") as file:
                file.truncate(1 << 40)
        case "depth":
            path.write_text('{"key": "a", "newest": ' + "[" * 100_000)
    assert RoundCursor.read(path, "a") is None
    cursor = RoundCursor(newest={"here": "e1"})
    if what in {"hole", "depth"}:  # a plain file of ours, which is replaced
        cursor.write(path, "a")
        assert RoundCursor.read(path, "a") == cursor
    else:
        with pytest.raises(OSError, match=str(path)):
            cursor.write(path, "a")
    assert outside.read_text() == "mine"
    assert not (tmp_path / "new").exists()
