"""Calls that cannot run and tools that fail: the model reads why, and the run goes on."""

from __future__ import annotations

import asyncio
import math
import threading

import pytest

from agentkit import Agent, ModelRetry, Tool, ToolDefinition, ToolFailed, tool
from agentkit.agent import ToolPolicy
from agentkit.agent.executor import Execution, Executor
from agentkit.agent.selection import SelectedTools
from agentkit.episodes.files import encode_episode
from agentkit.library.library import Library
from agentkit.messages import ToolCall
from agentkit.models.wire import WireNames, decode_call
from agentkit.testing import ScriptedModel
from agentkit.tools.canonical import is_json


async def only_result(model_calls, *tools, **options):
    rounds = [model_calls] * (2 if "refine" in options else 1)
    model = ScriptedModel([*rounds, "done"])
    result = await Agent(model, tools=tools, **options).run("go")
    assert result.output == "done"
    return result.episode.results[0]


async def outcome(function, call, **options):
    entry = function if isinstance(function, Tool) else tool(function)
    return await only_result([call(entry.name)], entry, **options)


class PanicError(BaseException):
    """An error that is no ``Exception``, as extensions in other languages raise."""


STRAYS = BaseExceptionGroup("tasks", [SystemExit(3), ExceptionGroup("more", [ValueError("odd")])])


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("no luck"),
        SystemExit(3),
        StopIteration("odd"),
        STRAYS,
        PanicError("no luck"),
        GeneratorExit("odd"),
        asyncio.CancelledError("by whom?"),
    ],
)
async def test_raises(call, error, is_async):
    """Any exception becomes a typed cause and one line, without a stack trace."""

    def broken() -> str:
        """Break."""
        raise error

    async def broken_later() -> str:
        """Break."""
        raise error

    result = await outcome(broken_later if is_async else broken, call)

    assert result.failure.kind == "tool_error"
    assert "Traceback" not in result.text
    assert "File " not in result.text


async def test_who_wants_to_end_is_not_held_up_by_a_group(call):
    """Ctrl-C inside a group of exceptions ends the run, as it does alone."""

    def broken() -> str:
        """Break."""
        raise BaseExceptionGroup("tasks", [ValueError("odd"), KeyboardInterrupt()])

    with pytest.raises(BaseExceptionGroup):
        await outcome(broken, call)


@pytest.mark.parametrize(
    ("signal", "kind", "words"),
    [
        (ModelRetry("we are closed on Sunday"), "retry_requested", "we are closed on Sunday"),
        (ModelRetry({"day": 1}), "retry_requested", "{'day': 1}"),  # what it says may be no text
        (ToolFailed("the shop has closed for good"), "tool_failed", "the shop has closed for good"),
        (ToolFailed(None), "tool_failed", "None"),
    ],
)
async def test_signals_are_passed_on_in_the_authors_words(call, signal, kind, words):
    """ModelRetry says: another try can work; ToolFailed says: do not repeat."""

    def book() -> str:
        """Book a day."""
        raise signal

    result = await outcome(book, call)

    is_retry = kind == "retry_requested"
    assert (result.failure.kind, result.failure.retryable) == (kind, is_retry)
    assert words in result.text
    assert ("try again" if is_retry else "Do not repeat") in result.text


async def test_async_tool_hangs(call):
    """An async tool that hangs is cancelled at its timeout."""

    async def hang() -> str:
        """Never end."""
        await asyncio.Event().wait()
        return ""

    result = await outcome(hang, call, tool_policy=ToolPolicy(timeout_seconds=0.05))

    assert result.failure.kind == "timeout"
    assert "0.05 seconds" in result.text


def test_sync_tool_hangs_and_the_program_still_ends(call):
    """A blocking tool that hangs is left behind; neither the run nor the loop waits for it."""
    release = threading.Event()

    @tool(timeout_seconds=0.05)
    def hang() -> str:
        """Never end."""
        release.wait(60)
        return ""

    model = ScriptedModel([[call("hang")], "done"])
    result = Agent(model, tools=[hang]).run_sync("go")
    release.set()

    assert result.output == "done"
    assert result.episode.results[0].failure.kind == "timeout"


@pytest.mark.parametrize("value", [float("nan"), object(), {1: object()}])
async def test_returns_what_json_can_not_hold(call, value):
    """The call counts as run, and its result as not showable."""

    def odd():
        """Return something odd."""
        return value

    result = await outcome(odd, call)

    assert result.failure.kind == "unserialisable_result"
    assert not result.failure.retryable


async def test_long_results_are_shortened_for_the_model_only(call):
    """The model reads a bounded text; the episode keeps the whole value."""
    from agentkit.agent.types import Limits

    def long() -> str:
        """Return much."""
        return "x" * 1000

    result = await outcome(long, call, limits=Limits(max_result_chars=100))

    assert len(result.value) == 1000
    assert result.text.startswith("x" * 100)
    assert len(result.text) < 200


def executor(library, sleeps, retries=2):
    async def sleep(seconds):
        sleeps.append(seconds)

    return Executor(
        tools=SelectedTools.whole(library),
        shared=Execution(policy=ToolPolicy(retries=retries, backoff_seconds=0.5, sleep=sleep)),
    )


def flaky(failures, **options):
    left = [failures]

    @tool(**options)
    async def fetch() -> str:
        """Fetch a page."""
        if left[0]:
            left[0] -= 1
            raise ConnectionError("reset by peer")
        return "page"

    return fetch


async def test_read_only_tool_is_repeated_with_growing_waits(call):
    """A tool that changes nothing is tried again after an exception, waiting longer each time."""
    sleeps = []

    (result,) = await executor(Library([flaky(2, effects=("reads",))]), sleeps).execute(
        [call("fetch")]
    )

    assert (result.value, result.attempts, sleeps) == ("page", 3, [0.5, 1.0])


async def test_a_generous_budget_does_not_repeat_a_call_for_ever(call):
    """What the model may try a thousand times is repeated three times: each wait is the double."""
    sleeps = []
    runs = executor(Library([flaky(1_000, effects=("reads",))]), sleeps, retries=1_000)

    (result,) = await runs.execute([call("fetch")])

    assert (result.attempts, sleeps) == (4, [0.5, 1.0, 2.0])
    assert result.failure.retryable  # by the model


@pytest.mark.parametrize("effects", [(), ("destructive", "idempotent")])
async def test_what_may_write_never_runs_twice(call, effects):
    """Neither a tool that declares nothing, nor one that destroys and claims to be idempotent."""
    fetch = flaky(1, effects=effects, requires_approval=False)

    (result,) = await executor(Library([fetch]), []).execute([call("fetch")])

    assert result.status == "failed"
    assert result.attempts == 1


async def test_the_models_retries_run_out(call):
    """After its budget, a tool's failure tells the model to stop trying."""

    @tool(max_retries=1)
    def book() -> str:
        """Book a day."""
        raise ModelRetry("another day, please")

    calls = [[call("book", id=str(i))] for i in range(3)]
    result = await Agent(ScriptedModel([*calls, "I give up."]), tools=[book]).run("go")

    assert [r.failure.retryable for r in result.episode.results] == [True, False, False]
    assert "Do not repeat" in result.episode.results[1].text


@pytest.mark.parametrize("error", [ModelRetry("again"), ValueError("odd"), OSError("away")])
@pytest.mark.parametrize("retries", [0, 1, 3])
async def test_a_failing_tool_is_run_no_more_often_than_its_retries_allow(call, error, retries):
    """However often the model asks, and whoever repeats: the function ran once and ``retries`` times."""
    runs = []

    @tool(effects=("reads",))
    def broken() -> str:
        """Break."""
        runs.append(1)
        raise error

    script = [[call("broken", id=str(number))] for number in range(9)]
    policy = ToolPolicy(retries=retries, backoff_seconds=0)
    result = await Agent(ScriptedModel([*script, "done"]), tools=[broken], tool_policy=policy).run(
        ""
    )

    assert len(runs) == 1 + retries
    last = result.episode.results[-1].failure
    assert (last.kind, last.retryable) == ("limit_exceeded", False)


async def test_a_success_gives_retries_back_and_a_final_failure_bars_its_call_alone(call):
    """Failures count in a row; after ``ToolFailed`` other arguments are still run."""
    runs = []

    @tool
    def find(number: int) -> str:
        """Find an order."""
        runs.append(number)
        if number == 1:
            raise ModelRetry("another")
        if number == 2:
            raise ToolFailed("no such order")
        return "found"

    asked = [1, 3, 1, 3, 2, 2, 4]
    script = [[call("find", id=str(at), number=number)] for at, number in enumerate(asked)]
    result = await Agent(ScriptedModel([*script, "done"]), tools=[find]).run("")

    assert runs == [1, 3, 1, 3, 2, 4]
    assert "This very call failed for good" in result.episode.results[5].text


@pytest.mark.parametrize(("error", "attempts"), [(ValueError("odd"), 1), (OSError("away"), 2)])
async def test_a_refused_value_is_not_sent_again(call, error, attempts):
    """The runtime repeats what may pass; the same value would be refused again."""

    @tool(effects=("reads",))
    def broken() -> str:
        """Break."""
        raise error

    policy = ToolPolicy(backoff_seconds=0)
    result = await outcome(broken, call, tool_policy=policy)

    assert result.attempts == attempts


async def test_unknown_tool(add, call):
    """An unknown name is answered with the nearest one."""
    result = await only_result([call("ad", a=1, b=2)], add)

    assert result.failure.kind == "unknown_tool"
    assert result.failure.nearest == ("add",)


async def test_a_tool_that_was_not_offered_is_unknown(add, call):
    """The library may hold more than the model was offered; only the offered may be called."""
    from agentkit.retrieval.retriever import Retrieval

    class OffersNothing:
        async def retrieve(self, query, library):
            return Retrieval(query=query, hits=(), offered=(), cards="", tokens=0)

    result = await only_result([call("add", a=1, b=2)], add, retriever=OffersNothing())

    assert result.failure.kind == "unknown_tool"


async def test_arguments_nested_without_end(add, call):
    """Absurdly deep arguments fail as malformed instead of exhausting the stack."""
    deep: dict[str, object] = {}
    for _ in range(900):
        deep = {"a": deep}

    result = await only_result([call("add", a=deep, b=1)], add, refine="adaptive")

    assert result.failure.kind == "malformed_arguments"


@pytest.mark.parametrize("value", ["1e400", "-1e400", '[{"x": 1e400}]'])
async def test_no_number_beyond_all_bounds_is_an_argument(value, store):
    """Of the model, of its programs and of what it answers: each reads why, and no record holds it."""

    @tool
    def take(x: object) -> str:
        """Take it."""
        raise AssertionError("never run")

    made = decode_call("1", "take", f'{{"x": {value}}}', WireNames(["take"]))
    model = ScriptedModel([[made], '{"x": 1e400}', '{"x": 1}'])
    agent = Agent(model, tools=[take], store=store, output_type={"type": "object"})
    result = await agent.run("go")
    assert result.episode.results[0].failure.kind == "malformed_arguments"
    assert "beyond all bounds" in result.episode.results[0].text
    assert result.output == {"x": 1}
    program = ToolCall(call_id="1", name="run_program", arguments={"program": "take(x=1e308 * 10)"})
    again = Agent(ScriptedModel([[program], "done"]), tools=[take], store=store, code_mode=True)
    assert "JSON cannot hold" in (await again.run("go")).episode.results[0].text
    assert not any("Infinity" in encode_episode(one) for one in store.select())


def test_such_an_argument_in_an_older_record_is_text():
    """So that what waits with one can be read, listed and refused."""
    kept = ToolCall.from_json({"call_id": "1", "name": "pay", "arguments": {"x": math.inf}})
    assert (kept.arguments, kept.malformed) == ({}, "{'x': inf}")


async def test_a_broken_schema_fails_the_call_only(call):
    """A definition with an unusable schema is reported to the model as the tool's fault."""
    schema = {"type": "object", "properties": {"a": {"type": "nonsense"}}}
    broken = Tool(definition=ToolDefinition.from_schema("odd", "", schema), function=print)

    result = await only_result([call("odd", a=1)], broken)

    assert result.failure.kind == "tool_error"
    assert not result.failure.retryable


@tool(pre=["b != 0"])
def div(a: float, b: float) -> float:
    """A quotient."""
    return a / b


@tool(post=["result >= 0"])
def wrong_root(x: float) -> float:
    """A square root with a mistake in it."""
    return -(x**0.5)


CHECKED = {"tool_policy": ToolPolicy(contracts="always")}


async def test_broken_precondition_is_told_before_the_tool_runs(call):
    """A call outside the tool's contract is not run; the model reads the condition and values."""
    result = await only_result([call("div", a=1, b=0)], div, **CHECKED)

    assert result.failure.kind == "contract_violated"
    assert result.failure.cause == "precondition"
    assert result.failure.retryable
    assert "`b != 0` does not hold for b = 0" in result.text


async def test_broken_postcondition_is_final(call):
    """A result outside the contract is withheld, and trying again is not suggested."""
    result = await only_result([call("wrong_root", x=4.0)], wrong_root, **CHECKED)

    assert (result.failure.kind, result.failure.cause) == ("contract_violated", "postcondition")
    assert not result.failure.retryable
    assert "result = -2.0" in result.text


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [("wrong_root", {"x": 4.0}, None), ("div", {"a": 1, "b": 0}, "tool_error")],
)
async def test_contracts_are_off_by_default(call, name, arguments, kind):
    """Without the option no condition is evaluated: the tool runs and says what it says."""
    failure = (await only_result([call(name, **arguments)], div, wrong_root)).failure

    assert (failure.kind if failure else None) == kind


async def test_condition_that_can_not_be_read_counts_as_broken(call):
    """A condition outside the language never passes silently."""

    @tool(pre=["a.b.c > 0"])
    def odd(a: int) -> int:
        """Anything."""
        return a

    result = await only_result([call("odd", a=1)], odd, **CHECKED)

    assert result.failure.kind == "contract_violated"
    assert "cannot be read" in result.text


@pytest.mark.parametrize("where", ["text", "value", "key", "number key", "retry", "final", "agent"])
@pytest.mark.parametrize("store", [None, "memory:"])
async def test_what_no_record_takes_is_cleaned_where_it_enters(call, where, store):
    """Half a surrogate pair, or a key that is a number, keeps no later call from being approved."""
    odd = "a\ud800b"
    values = {"text": odd, "value": {"k": [odd]}, "key": {odd: 1}, "number key": {1: "a"}}
    errors = {"retry": ModelRetry(odd), "final": ToolFailed(odd)}

    @tool(effects=["reads"])
    def look() -> object:
        """Look."""
        if where in errors:
            raise errors[where]
        return values[where]

    if where == "agent":
        look = Agent(ScriptedModel([odd]), name="look").as_tool()
    ran = []

    @tool(effects=["destructive"])
    def wipe() -> str:
        """Wipe."""
        ran.append(1)
        return "wiped"

    first = call("look", request="?") if where == "agent" else call("look")
    agent = Agent(ScriptedModel([[first], [call("wipe")], "done"]), tools=[look, wipe], store=store)
    waiting = await agent.run("go")
    encode_episode(waiting.episode).encode()
    result = waiting.episode.results[0]
    assert is_json(result.to_json())
    assert "\ufffd" in result.text or result.value == {"1": "a"}
    kept = waiting if store is None else agent.store.get(waiting.episode.episode_id)
    assert (await agent.resume(kept, approvals={"wipe": True})).output == "done"
    assert ran == [1]
