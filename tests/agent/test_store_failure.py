"""While the store takes no episodes: the loop is free, no effect is hidden, and runs are refused."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest
from support.unreliable_store import UnreliableStore

from agentkit import Agent, open_store, tool
from agentkit.agent import StorePolicy
from agentkit.errors import EpisodeFormatError, EpisodeNotKeptError, StoreUnavailableError
from agentkit.messages import ToolCall
from agentkit.testing import FunctionModel


@tool
def send(text: str) -> str:
    """Send a message."""
    return f"sent {text}"


@tool(effects=["reads"])
def look(text: str) -> str:
    """Look something up."""
    return f"saw {text}"


def call_as_asked(request):
    """Calls the tool that the request names, then says what it gave."""
    last = request.messages[-1]
    if last.role == "tool":
        return last.text
    return [ToolCall(call_id="c", name=last.text, arguments={"text": "it"})]


class LockedStore(UnreliableStore):
    """A store that answers nobody who appends before it is let go."""

    def __init__(self, store):
        super().__init__(store)
        self.asked, self.go_on = threading.Event(), threading.Event()

    def append_many(self, episodes):
        """Keep them, in the end."""
        self.asked.set()
        assert self.go_on.wait(20)
        super().append_many(episodes)


@pytest.fixture
def far():
    """A store that may go away."""
    return UnreliableStore(open_store("memory:"))


@pytest.fixture
def make_agent(far):
    """Makes an agent with both tools on that store."""

    def make(**options):
        model = FunctionModel(call_as_asked)
        return Agent(model, **{"tools": [send, look], "store": far, **options})

    return make


def expect_effect(episode):
    """The episode tells of the call and of what it gave."""
    assert (episode.stop_reason, episode.output) == ("finished", "sent it")
    assert [result.value for result in episode.results] == ["sent it"]


@pytest.mark.parametrize("ends", ["finished", "cancelled"])
async def test_a_run_cancelled_while_the_store_is_locked_holds_up_nobody(ends):
    """The event loop goes on, the caller hears of the cancellation after the episode is kept."""
    began = asyncio.Event()

    async def answer(request):
        began.set()
        if ends == "cancelled":
            await asyncio.Event().wait()
        return call_as_asked(request)

    locked = LockedStore(open_store("memory:"))
    run = asyncio.create_task(Agent(FunctionModel(answer), tools=[send], store=locked).run("send"))
    await began.wait()
    if ends == "cancelled":
        run.cancel()
    await asyncio.to_thread(locked.asked.wait, 20)
    if ends == "finished":  # while its episode is on its way
        run.cancel()
    for _ in range(100):  # turns of a loop that is free
        await asyncio.sleep(0)
    assert not run.done()
    locked.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await run
    (episode,) = locked.select()
    assert episode.stop_reason == ends


async def test_the_record_of_an_effect_is_kept_once_the_store_is_back(make_agent, far):
    """The error carries the episode; the store gets the same one, and no other, by itself."""
    agent = make_agent()
    far.away()
    with pytest.raises(EpisodeNotKeptError, match="do not repeat the run") as raised:
        await agent.run("send")
    expect_effect(raised.value.episode)
    assert agent.queue.state.waiting == agent.queue.state.delayed == 1
    far.back()
    assert await asyncio.to_thread(agent.queue.flush, 20)
    (episode,) = far.select()
    expect_effect(episode)
    assert (agent.queue.state.kept, agent.queue.is_failing) == (1, False)


async def test_no_run_begins_while_no_episode_can_be_kept(make_agent, far):
    """The model is not asked and no tool runs; with the store back the same call works."""
    agent = make_agent()
    far.away()
    with pytest.raises(EpisodeNotKeptError):
        await agent.run("send")
    with pytest.raises(StoreUnavailableError, match="no run begins"):
        await agent.run("send")
    far.back()
    assert (await agent.run("send")).output == "sent it"
    assert len(list(far.select())) == 2


async def test_a_run_may_begin_whose_tools_only_read(make_agent, far):
    """With ``refuse_writes`` what a tool may change is not changed without a record."""
    agent = make_agent(store_policy=StorePolicy(on_failure="refuse_writes"))
    far.away()
    assert (await agent.run("look")).is_kept is False
    assert (await agent.run("look")).output == "saw it"
    refused = (await agent.run("send")).episode.results[0]
    assert (refused.status, refused.value) == ("denied", None)
    assert "the store takes no episodes" in refused.text
    far.back()
    assert await asyncio.to_thread(agent.queue.flush, 20)
    result = await agent.run("send")
    assert (result.output, result.is_kept) == ("sent it", True)
    assert len(list(far.select())) == 4


async def test_an_agent_may_go_on(make_agent, far):
    """With ``continue`` the result says that it is not kept yet, and the episodes follow."""
    agent = make_agent(store_policy=StorePolicy(on_failure="continue"))
    far.away()
    results = [await agent.run("send") for _ in range(3)]
    assert [(one.output, one.is_kept) for one in results] == [("sent it", False)] * 3
    far.back()
    await agent.close()
    assert [one.episode_id for one in far.select()][::-1] == [
        one.episode.episode_id for one in results
    ]


async def test_a_run_under_way_writes_no_more(make_agent, far):
    """A tool that may write is not run once the store is known to take no episodes."""
    store_fails = asyncio.Event()

    async def slow(request):
        if request.messages[-1].role != "tool" and request.messages[-1].text == "send":
            await store_fails.wait()
        return call_as_asked(request)

    agent = Agent(FunctionModel(slow), tools=[send, look], store=far)
    late = asyncio.create_task(agent.run("send"))
    await asyncio.sleep(0)
    far.away()
    with pytest.raises(EpisodeNotKeptError):
        await agent.run("look")
    store_fails.set()
    with pytest.raises(EpisodeNotKeptError) as raised:
        await late
    assert raised.value.episode.results[0].status == "denied"


async def test_a_store_that_fails_is_one_line_in_the_log(make_agent, far, caplog):
    """However many episodes it does not take; and one more when it is back."""
    agent = make_agent(store_policy=StorePolicy(on_failure="continue"))
    far.away()
    with caplog.at_level(logging.INFO, "agentkit.agent.episode_queue"):
        for _ in range(10):
            await agent.run("send")
        far.back()
        await agent.close()
    first, last = caplog.records
    assert "the store takes no episodes" in first.getMessage()
    assert "the store is away" in first.getMessage()
    assert first.exc_info is None
    assert last.getMessage() == "the store takes episodes again"


async def test_an_episode_that_the_store_refuses_holds_up_no_other(make_agent, far):
    """What JSON can not hold is the caller's to hear at once; later runs are kept."""

    class Strict(UnreliableStore):
        """Refuses one request."""

        def append_many(self, episodes):
            """Keep them, unless one is refused."""
            for episode in episodes:
                if episode.request == "look":
                    raise EpisodeFormatError("not this one")
            super().append_many(episodes)

    agent = make_agent(store=Strict(open_store("memory:")))
    with pytest.raises(EpisodeFormatError):
        await agent.run("look")
    assert (await agent.run("send")).is_kept
    state = agent.queue.state
    assert (state.kept, state.refused, state.waiting) == (1, 1, 0)


async def test_a_store_that_never_answers_ends_no_run_late(far):
    """A run waits for its episode for a bounded time, and says that it is not kept."""
    from agentkit.agent.episode_queue import EpisodeQueue
    from agentkit.episodes import Episode

    locked = LockedStore(far)
    queue = EpisodeQueue(locked, wait_seconds=0.05)
    error = await queue.put(Episode(episode_id="e1", request="Hi"))
    assert isinstance(error, EpisodeNotKeptError)
    assert queue.is_failing
    locked.go_on.set()
    assert await asyncio.to_thread(queue.flush, 20)
    assert (queue.is_failing, [one.episode_id for one in far.select()]) == (False, ["e1"])


async def test_episodes_that_come_together_are_written_together(far):
    """Behind a slow store the others wait for one write, and not each for its own."""
    from agentkit.agent.episode_queue import EpisodeQueue
    from agentkit.episodes import Episode

    sizes = []

    class Slow(LockedStore):
        """Notes how many come at a time."""

        def append_many(self, episodes):
            """Keep them."""
            sizes.append(len(episodes))
            super().append_many(episodes)

    slow = Slow(far)
    queue = EpisodeQueue(slow)
    putting = [
        asyncio.create_task(queue.put(Episode(episode_id=f"e{n}", request="Hi"))) for n in range(50)
    ]
    await asyncio.to_thread(slow.asked.wait, 20)
    await asyncio.sleep(0)
    slow.go_on.set()
    assert await asyncio.gather(*putting) == [None] * 50
    assert len(sizes) <= 3
    assert [one.episode_id for one in far.select()] == [f"e{n}" for n in range(49, -1, -1)]
