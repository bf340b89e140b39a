"""The tests that every ``EpisodeStore`` passes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from agentkit.episodes import (
    Diagnosis,
    Episode,
    RefineTrace,
    RetrievalTrace,
    StageReport,
    StopReason,
    Turn,
    Verdict,
)
from agentkit.errors import StoreError
from agentkit.library.store import EpisodeFilter, Store
from agentkit.media import File
from agentkit.messages import (
    AssistantMessage,
    TokenIds,
    ToolCall,
    ToolFailure,
    ToolResult,
    Usage,
)
from agentkit.testing.conformance.fixtures import OpenAgain, StoreFixtures, together


def _episode(
    episode_id: str,
    *tools: str,
    session_id: str | None = None,
    stop_reason: StopReason = "finished",
) -> Episode:
    calls = tuple(ToolCall(call_id=str(i), name=name) for i, name in enumerate(tools))
    return Episode(
        episode_id=episode_id,
        request=f"request of {episode_id}",
        turns=(Turn(message=AssistantMessage(tool_calls=calls)),),
        session_id=session_id,
        stop_reason=stop_reason,
    )


def _full_episode() -> Episode:
    """An episode with every part filled, in several scripts."""
    call = ToolCall(call_id="c1", name="天気", arguments={"city": "Zürich", "days": 2, "x": None})
    broken = ToolCall(call_id="c2", name="add", malformed='{"a": 1,')
    failure = ToolFailure(kind="malformed_arguments", rule="not JSON", nearest=("add",))
    results = (
        ToolResult(call_id="c1", name="天気", status="ok", value={"t": [1.5, None]}, text="1.5 °C"),
        ToolResult(call_id="c2", name="add", status="failed", text="no", failure=failure),
    )
    usage = Usage(requests=2, prompt_tokens=10, completion_tokens=5, cost_usd=0.001)
    turn = Turn(
        message=AssistantMessage(text="🙂 half a pair: \ud83d", tool_calls=(call, broken)),
        results=results,
        usage=usage,
        retrieval=RetrievalTrace(
            query="q",
            shortlist=("天気", "add"),
            offered=("天気",),
            stages=(StageReport(stage="lexical", survivors=2, tokens=9, seconds=0.1),),
        ),
        refine=RefineTrace(
            mode="adaptive",
            proposals=((call,), (call,)),
            chosen=1,
            converged=True,
            usage=usage,
            tokens=(TokenIds(prompt=(1,), completion=(2,), logprobs=(-0.5,)),),
        ),
        seconds=0.5,
        model_seconds=0.4,
    )
    return Episode(
        episode_id="full",
        request="Wie ist das Wetter?\n\u2028'; DROP TABLE episodes; --",
        media=(File(data=b"%PDF-1.7 \0\xff", name="\u5929\u6c17.pdf"),),
        turns=(turn,),
        stop_reason="error",
        output={"answer": [1, 2.5, True, None, "x"]},
        model="scripted",
        library_version=7,
        library_digest="d" * 64,
        session_id="s-1",
        history_length=3,
        usage=usage,
        started_at="2026-03-02T10:00:00+00:00",
        seconds=1.25,
        error="ModelTimeoutError: slow",
        verdict=Verdict(passed=False),
        diagnosis=Diagnosis(label="argument_mismatch"),
        metadata={"user": "Łukasz"},
    )


def _ids(store: Store, matching: EpisodeFilter | None = None) -> list[str]:
    return [episode.episode_id for episode in store.select(matching or EpisodeFilter())]


class EpisodeStoreConformance(StoreFixtures):
    """Subclass it in a test module, name the class ``Test...`` and override one fixture.

    See ``StoreFixtures`` for the choice; docs/write-a-store.md shows a complete example.
    """

    def test_a_fresh_store_has_no_episodes(self, store: Store) -> None:
        """A fresh store finds nothing and has nothing to select."""
        assert store.get("none") is None
        assert _ids(store) == []

    def test_an_episode_comes_back_equal(self, store: Store) -> None:
        """Every part of an episode survives, half a surrogate pair of a model included."""
        store.append(_full_episode())
        assert store.get("full") == _full_episode()
        assert list(store.select()) == [_full_episode()]

    def test_a_known_id_is_ignored(self, store: Store) -> None:
        """Appending an id again changes nothing, so that a retry is safe."""
        store.append(_episode("e1", "add", session_id="s"))
        store.append(replace(_episode("e1", "sub"), request="another"))
        assert _ids(store) == ["e1"]
        kept = store.get("e1")
        assert kept is not None
        assert kept.request == "request of e1"
        assert _ids(store, EpisodeFilter(tool_name="sub")) == []

    def test_newest_come_first_unless_asked(self, store: Store) -> None:
        """Episodes come in the order in which the store got them, newest first by default."""
        for name in ("b", "a", "c"):
            store.append(_episode(name))
        assert _ids(store) == ["c", "a", "b"]
        assert _ids(store, EpisodeFilter(oldest_first=True)) == ["b", "a", "c"]

    def test_filters_select(self, store: Store) -> None:
        """Session, tool and stop reason each narrow the selection, alone and together."""
        store.append(_episode("1", "add", "add", session_id="s"))
        store.append(_episode("2", "sub", session_id="s", stop_reason="error"))
        store.append(_episode("3", "add", "sub", session_id="t"))
        store.append(_episode("4"))
        assert _ids(store, EpisodeFilter(session_id="s")) == ["2", "1"]
        assert _ids(store, EpisodeFilter(tool_name="add")) == ["3", "1"]
        assert _ids(store, EpisodeFilter(stop_reason="error")) == ["2"]
        assert _ids(store, EpisodeFilter(tool_name="sub", session_id="t")) == ["3"]
        assert _ids(store, EpisodeFilter(tool_name="add", stop_reason="error")) == []
        assert _ids(store, EpisodeFilter(session_id="")) == []

    @pytest.mark.parametrize(
        "value", ["a", "a'b\"c", "Łódź", "", "{}", "null", "1", "\ud800", "x" * 5000]
    )
    def test_labels_select(self, store: Store, value: str) -> None:
        """Labels select the episodes whose metadata holds them all, whatever text they are."""
        labels = {"run.of[x]": value, "task": "t"}
        store.append(replace(_episode("1", session_id="s"), metadata={**labels, "more": "m"}))
        store.append(replace(_episode("2"), metadata={**labels, "task": "u"}))
        store.append(replace(_episode("3"), metadata={"run.of[x]": f"{value}.", "task": "t"}))
        store.append(replace(_episode("4"), metadata=labels))
        store.append(_episode("5"))
        assert _ids(store, EpisodeFilter(labels=labels)) == ["4", "1"]
        assert _ids(store, EpisodeFilter(labels=labels, limit=1)) == ["4"]
        assert _ids(store, EpisodeFilter(labels=labels, session_id="s")) == ["1"]
        assert _ids(store, EpisodeFilter(labels={"absent": value})) == []

    @pytest.mark.parametrize("output", [float("nan"), float("-inf")])
    def test_labels_select_beside_numbers_that_are_no_json(
        self, store: Store, output: float
    ) -> None:
        """An episode with NaN in it is found by its labels, and hides no other one."""
        labels = {"run": "r"}
        store.append(replace(_episode("1"), metadata=labels))
        store.append(replace(_episode("2"), metadata=labels, output=output))
        store.append(replace(_episode("3"), metadata={"run": "s"}, output=output))
        store.append(replace(_episode("4"), metadata=labels))
        assert _ids(store, EpisodeFilter(labels=labels)) == ["4", "2", "1"]
        assert _ids(store, EpisodeFilter(labels=labels, limit=2)) == ["4", "2"]
        assert _ids(store, EpisodeFilter(labels={"run": "s"})) == ["3"]

    def test_a_limit_is_kept(self, store: Store) -> None:
        """A limit takes from the front of the chosen order; 0 takes nothing."""
        for name in ("1", "2", "3"):
            store.append(_episode(name, "add"))
        assert _ids(store, EpisodeFilter(limit=2)) == ["3", "2"]
        assert _ids(store, EpisodeFilter(limit=2, oldest_first=True, tool_name="add")) == ["1", "2"]
        assert _ids(store, EpisodeFilter(limit=0)) == []
        assert _ids(store, EpisodeFilter(limit=9)) == ["3", "2", "1"]

    @pytest.mark.parametrize("oldest_first", [True, False])
    def test_many_are_read_without_gaps(self, store: Store, *, oldest_first: bool) -> None:
        """A long selection has each episode once, and none that was kept after it began."""
        names = [f"{number:04}" for number in range(200)]
        for name in names:
            store.append(_episode(name, "add"))
        seen = []
        for episode in store.select(EpisodeFilter(oldest_first=oldest_first)):
            seen.append(episode.episode_id)
            store.append(replace(episode, episode_id=f"again-{episode.episode_id}"))
        assert seen == (names if oldest_first else names[::-1])
        assert len(_ids(store)) == 400

    def test_threads_lose_nothing(self, store: Store) -> None:
        """Episodes appended from several threads at once are all kept."""

        def write(writer: int) -> None:
            for number in range(20):
                store.append(_episode(f"{writer}-{number}", session_id=str(writer)))

        assert together([partial(write, writer) for writer in range(4)]) == [None] * 4
        for writer in range(4):
            matching = EpisodeFilter(session_id=str(writer), oldest_first=True)
            assert _ids(store, matching) == [f"{writer}-{number}" for number in range(20)]

    def test_episodes_are_there_after_opening_again(
        self, store: Store, open_store_again: OpenAgain
    ) -> None:
        """Closing loses no episode, and a second connection sees what the first one kept."""
        replica = open_store_again()
        store.append(_full_episode())
        assert replica.get("full") == _full_episode()
        store.close()
        assert list(open_store_again().select()) == [_full_episode()]

    def test_a_closed_store_takes_no_episode(self, store: Store) -> None:
        """Using a closed store raises instead of losing the episode."""
        store.close()
        with pytest.raises(StoreError, match="closed"):
            store.append(_episode("late"))
