"""The numbers of the health page: by version, by day, by arm, and when verdicts come late."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from html import escape
from math import log

from hypothesis import given, strategies as st
from starlette.testclient import TestClient

from agentkit import Library, ToolDefinition, open_store
from agentkit.episodes import Episode, Turn, Verdict
from agentkit.episodes.labels import as_imported
from agentkit.errors import StoreUnavailableError
from agentkit.evaluation.doctor import Catalogue, examine
from agentkit.evolution.compare import EpisodeGates
from agentkit.evolution.observers import judged
from agentkit.library import LibraryChange
from agentkit.library.memory import MemoryStore
from agentkit.messages import AssistantMessage, ToolCall
from agentkit_studio.health_fold import MANY_TOOLS, MOST_FINDINGS, Examination, HealthFold

from .conftest import studio_of


def made(number, version=1, passed=None, **fields):
    """An episode that ends in that verdict."""
    verdict = None if passed is None else Verdict(passed=passed)
    at = f"2026-11-{1 + number % 28:02}T10:00:00.000+00:00"
    return Episode(
        episode_id=f"{number:016x}",
        request="x",
        library_version=version,
        verdict=verdict,
        started_at=at,
        **fields,
    )


def folded(store):
    """The numbers of all that is there."""
    fold = HealthFold(store)
    fold.update(wait=20)
    assert not fold.is_working
    return fold


def numbers(fold):
    """Accuracy and counts by version."""
    return {v: (g.runs, g.judged, g.passed) for v, g in fold.versions.items()}


def test_versions_and_days_are_counted():
    """Runs, verdicts and the interval; what was imported is left out."""
    store = MemoryStore()
    for number in range(10):
        store.append(made(number, version=1 + number % 2, passed=number < 6))
    foreign = made(99, version=7)
    store.append(as_imported(foreign, "elsewhere"))
    fold = folded(store)
    assert numbers(fold) == {1: (5, 5, 3), 2: (5, 5, 3)}
    record = fold.to_json()
    assert record["counted"] == 10
    assert record["versions"][0]["accuracy"] == 0.6
    assert record["versions"][0]["accuracy_low"] < 0.6 < record["versions"][0]["accuracy_high"]
    assert [one["day"] for one in record["days"]][:2] == ["2026-11-01", "2026-11-02"]


def test_arms_of_a_canary_stand_beside_each_other():
    """By the labels that the router writes."""
    store = MemoryStore()
    for number in range(8):
        arm = "candidate" if number % 4 == 0 else "control"
        labels = {"experiment": "p1", "arm": arm}
        store.append(made(number, passed=number != 4, metadata=labels))
    arms = {one["arm"]: one["accuracy"] for one in folded(store).to_json()["arms"]}
    assert arms == {"candidate": 0.5, "control": 1.0}


def test_a_canary_shows_its_evidence_and_the_line(studio, act, store, proposal_id, manager):
    """As the gate works it out, with the alarm and the line at which it rings."""
    client = studio()
    act(client, "canary", share="50")
    for number in range(44):  # the last of them go on with the first sessions, and count for none
        arm = "candidate" if number % 2 else "control"
        labels = {"experiment": proposal_id, "arm": arm}
        passed = (arm == "control") == (number < 40)
        one = made(number, passed=passed, metadata=labels, session_id=f"s{number % 40}")
        at = f"2026-11-01T10:{number:02}:00.000+00:00"
        store.append(replace(one, episode_id=f"ff{number:014x}", started_at=at))
    page = client.get("/health").text
    manager.refresh()
    record = manager.ledger.proposals[proposal_id]
    [report] = EpisodeGates(episodes=store)(record, manager.ledger)
    assert escape(report.reason) in page
    [path] = client.get("/health.json").json()["canaries"]
    assert path["proposal"] == proposal_id
    assert len(path["block"]) == len(path["alarm"]) == 20
    for name in ("alarm", "no_worse"):
        assert path[name][-1] == round(report.statistics[f"{name}_log_e"] / log(10), 3)
    assert path["alarm"][-1] > path["line"] > path["no_worse"][-1]


def test_a_store_that_goes_away_leaves_the_numbers_that_there_were(caplog):
    """The log says so, and the next look goes on."""

    class Away(MemoryStore):
        is_away = False

        def select(self, *filters):
            if self.is_away:
                raise StoreUnavailableError("the store is away")
            return super().select(*filters)

    store = Away()
    store.append(made(1, passed=True))
    fold = folded(store)
    store.append(made(2, passed=True))
    store.is_away = True
    fold.update(wait=20)
    assert numbers(fold) == {1: (1, 1, 1)}
    assert "the store is away" in caplog.text
    store.is_away = False
    fold.update(wait=20)
    assert numbers(fold) == {1: (2, 2, 2)}


def test_of_many_canaries_the_newest_are_kept():
    """Memory stays bounded, whatever was tried in a year."""
    store = MemoryStore()
    for number in range(30):
        labels = {"experiment": f"p{number // 5}", "arm": "candidate"}
        store.append(made(number, passed=True, metadata=labels))
    fold = folded(store)
    assert [len(fold.scores_of(f"p{one}")) for one in range(6)] == [0, 0, 5, 5, 5, 5]
    for number in range(30, 35):
        labels = {"experiment": "p6", "arm": "control"}
        store.append(made(number, passed=True, metadata=labels))
    fold.update(wait=20)
    assert [len(fold.scores_of(f"p{one}")) for one in (2, 3, 6)] == [0, 5, 5]


def test_earlier_libraries_are_those_of_the_store(store, manager):
    """Made from the newest one, which they share their unchanged tools with."""
    manager.register([replace(manager.library["loan_offer"].definition, name="lease_offer")])
    words = replace(manager.library["loan_offer"].definition.description, summary="A loan.")
    manager.register([replace(manager.library["loan_offer"].definition, description=words)])
    gone = LibraryChange(proposal_id="gone", removals=("lease_offer",))
    store.commit(gone, expected_version=manager.refresh().version)
    fold = HealthFold(store)
    newest = manager.refresh().version
    for version in (*range(1, newest + 1), 99):
        expected = store.load(version) if version <= newest else Library()
        found = fold.library(version)
        assert found.version == expected.version
        assert {one.name: one.digest for one in found.definitions} == {
            one.name: one.digest for one in expected.definitions
        }


def test_a_large_library_is_examined_in_pieces_with_the_same_findings():
    """Counts, tokens and the first of each kind are those of one look."""
    names = [f"tool_{number:04}" for number in range(MANY_TOOLS)]
    tools = [ToolDefinition.from_schema(name, "", {"properties": {"n": {}}}) for name in names]
    library = Library(
        [*tools, replace(tools[0], name="Tool-0000"), replace(tools[0], name="web_search")]
    )
    found = None
    examination = Examination()
    while found is None:
        found = examination.of(library)
    codes = [kind.code for kind, _, _ in found.kinds]
    whole = examine(Catalogue.of(library.definitions), codes=codes)
    groups = {kind.code: one for kind, one in whole.grouped()}
    assert {"no_description", "alike_names", "reserved_name"} <= set(codes) == set(groups)
    assert {kind.code: count for kind, count, _ in found.kinds} == {
        code: len(one) for code, one in groups.items()
    }
    assert codes == list(groups)
    assert found.tokens == whole.tokens
    for kind, _, first in found.kinds:
        assert first == groups[kind.code][:MOST_FINDINGS]


def test_worth_is_read_from_answers_of_eval_too():
    """Each of them once, and the newer ones at the next look."""
    call = ToolCall(call_id="1", name="loan", arguments={})
    turn = Turn(message=AssistantMessage(tool_calls=(call,)))
    store, evaluations = MemoryStore(), MemoryStore()
    store.append(made(1, turns=(turn,)))
    evaluations.append(made(2, turns=(turn,)))
    fold = HealthFold(store, evaluations=evaluations, changed=lambda: ["loan"])
    fold.update(wait=20)
    assert len(fold.traffic.of("loan")) == 2
    evaluations.append(made(3, turns=(turn,)))
    fold.update(wait=20)
    assert len(fold.traffic.of("loan")) == 3
    assert fold.counted == 1


verdicts = st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=20)


@given(
    first=st.lists(st.booleans() | st.none(), min_size=1, max_size=10),
    late=verdicts,
    cut=st.integers(0, 20),
)
def test_going_on_gives_what_starting_again_gives(first, late, cut):
    """However late verdicts fall before and after a look, the numbers are those of one fold."""
    store = MemoryStore()
    for number, passed in enumerate(first):
        store.append(made(number, version=1 + number % 3, passed=passed))
    records = []
    for at, (number, passed) in enumerate(late):
        one = store.get(f"{number % len(first):016x}")
        record = judged(one, Verdict(passed=passed))
        records.append(replace(record, episode_id=f"ff{at:014x}"))
    fold = HealthFold(store)
    for at, record in enumerate(records):
        if at == cut:
            fold.update(wait=20)
        store.append(record)
    fold.update(wait=20)
    assert numbers(fold) == numbers(folded(store))


def test_the_page_has_the_numbers_of_its_charts(studio, act, proposal_id):
    """As a table, as JSON and as CSV."""
    client = studio()
    act(client, "approve")
    page = client.get("/health").text
    assert "24 runs" in page
    assert "retry requested" in page
    record = client.get("/health.json").json()
    assert record["versions"][0]["failed_calls"] == 12
    rows = client.get("/health.csv").text.splitlines()
    assert rows[0].startswith("day,runs,judged,accuracy")
    assert rows[0].endswith("argument_mismatch")
    assert len(rows) == 2
    assert client.get("/health.csv?table=versions").text.startswith("version,runs")
    assert client.get("/health.csv?table=users").status_code == 404
    assert record["versions"][0]["labels"] == {"argument_mismatch": 12}


def test_an_empty_store_says_what_to_type(tmp_path):
    """Nothing is drawn of nothing."""
    with closing(open_store(f"sqlite:///{tmp_path / 'empty.db'}")) as store:
        page = TestClient(studio_of(store)).get("/health", headers={"x-user": "ann"}).text
    assert "No run was recorded yet." in page


def test_run_times_are_an_even_sample():
    """Their number stays bounded, and the median is that of all."""
    count = 600
    store = MemoryStore()
    for number in range(count):
        store.append(made(number, seconds=float(number)))
    group = folded(store).versions[1]
    assert len(group.seconds) == 500
    assert abs(group.to_json()["median_seconds"] - count / 2) < count / 8
