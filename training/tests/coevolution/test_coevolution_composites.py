"""Composites: distilled from successes, offered, run in a task's world, rewarded when they help."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import Library, open_store
from agentkit.episodes import Episode, Turn, Verdict
from agentkit.evaluation import Benchmark, NumberAnswer, Task, with_tools as environment_of
from agentkit.evolution import ToolManager
from agentkit.interop.export import read_artifact
from agentkit.messages import AssistantMessage, ToolCall, ToolResult
from agentkit.testing import FunctionModel, ScriptedModel, primitive_library
from agentkit_training import PolicyModel, tiny_policy
from agentkit_training.coevolution.checkpoint import FrozenEngine
from agentkit_training.coevolution.keeper import LibraryKeeper
from agentkit_training.coevolution.settings import CoevolutionSettings, ablation
from agentkit_training.coevolution.source import Coevolution
from agentkit_training.coevolution.stages import warm_up
from agentkit_training.coevolution.tasks import with_composites
from agentkit_training.export.handover import export_library
from agentkit_training.fine_tuning.solutions import shortened

TOOLS = [primitive_library()[name] for name in ("add", "mul", "sub")]
WRITTEN = '''@composite(examples=[{"arguments": {"price": 4, "count": 3, "fee": 2}, "result": 14}])
def order_total(price: float, count: int, fee: float) -> float:
    """What an order costs with its fee."""
    return add(mul(price, count), fee)'''


def trajectory(number, *, passed=True):
    """An order: price times count, with a fee."""
    price, count, fee = 3 + number, 2 + number, 5 + 2 * number
    total = price * count
    calls = [("mul", {"a": price, "b": count}, total), ("add", {"a": total, "b": fee}, total + fee)]
    turns = []
    for at, (name, arguments, value) in enumerate(calls):
        call = ToolCall(call_id=str(at), name=name, arguments=arguments)
        result = ToolResult(call_id=str(at), name=name, status="ok", value=value)
        turns.append(Turn(message=AssistantMessage(tool_calls=(call,)), results=(result,)))
    return Episode(
        episode_id=f"order-{number:02}",
        request=f"{count} pieces at {price} with a fee of {fee}?",
        turns=(*turns, Turn(message=AssistantMessage(text=str(total + fee)))),
        output=str(total + fee),
        verdict=Verdict(passed=passed, score=float(passed)),
    )


@pytest.fixture
def orders():
    """A question about an order."""
    task = Task(
        task_id="order",
        category="orders",
        request="2 pieces at 3 with a fee of 5?",
        offered=("add", "mul", "sub"),
        expects=(NumberAnswer(value="11"),),
    )
    return Benchmark(
        name="orders",
        tasks=(task,),
        definitions=tuple(tool.definition for tool in TOOLS),
        environment=environment_of(TOOLS),
    )


@pytest.fixture
def warm():
    """A store whose library holds the primitives."""
    store = open_store("memory:")
    ToolManager(store, tools=TOOLS).register(TOOLS)
    return store


def distil(store, episodes, **more):
    """What a keeper makes of episodes."""
    bench = Benchmark(name="orders", tasks=(), definitions=())
    settings = CoevolutionSettings(composites=True, **more)
    keeper = LibraryKeeper(settings=settings, benchmark=bench, store=store, tools=TOOLS)
    return keeper.distil(list(episodes))


def test_what_recurs_in_successes_becomes_a_composite(warm):
    """Four orders that went well give one composite of depth 1, through the Tool Manager."""
    (one,) = distil(warm, map(trajectory, range(4)))
    assert (one.stream, one.state) == ("composite", "active")
    library = warm.load()
    assert library.version == 2
    assert {child.name for child in library[one.tool].definition.signature.children} == {
        "add",
        "mul",
    }


def test_the_same_again_is_merged(warm):
    """A second look at what is known adds no second tool."""
    distil(warm, map(trajectory, range(4)))
    again = distil(warm, map(trajectory, range(4, 8)))
    assert [one.state for one in again] == ["merged"]
    assert len(warm.load()) == 4


def test_failures_and_rare_successes_teach_nothing(warm):
    """Below rho nothing is mined, nor below the support."""
    assert distil(warm, (trajectory(n, passed=False) for n in range(4))) == ()
    assert distil(warm, map(trajectory, range(2))) == ()
    assert warm.load().version == 1


def test_a_task_that_offers_the_primitives_offers_the_composite(warm, orders):
    """It is offered where what it is made of is offered, and runs on that world's tools."""
    (one,) = distil(warm, map(trajectory, range(4)))
    library = warm.load()
    fewer = replace(orders.tasks[0], task_id="fewer", offered=("add",))
    shown = with_composites(replace(orders, tasks=(*orders.tasks, fewer)), library)
    assert shown.tasks[0].offered == ("add", "mul", "sub", one.tool)
    assert shown.tasks[1].offered == ("add",)
    world = shown.environment(shown.tasks[0])
    composite = next(tool for tool in world.tools() if tool.name == one.tool)
    worked = library[one.tool].definition.worked_calls[0]
    assert composite(**worked.arguments) == worked.result
    assert world.state() == orders.environment(orders.tasks[0]).state()


def test_without_composites_the_benchmark_stays(orders):
    """Nothing is wrapped where there is nothing to offer, nor where no tool is run."""
    assert with_composites(orders, Library(TOOLS)) is orders


def run_of(orders, settings, **more):
    """A run whose policy knows nothing; its library is what matters here."""
    model = PolicyModel(tiny_policy(), max_tokens=2)
    settings = replace(settings, group_size=2, steps=1)
    keeper = LibraryKeeper(settings=settings, benchmark=orders, tools=TOOLS, **more)
    return Coevolution(model=model, keeper=keeper, settings=settings, benchmark=orders)


def test_the_library_is_warm_before_the_loop(orders):
    """Gold trajectories and what the base policy does become composites, which the loop offers."""
    source = run_of(orders, ablation("cocoda-no-retrieval"))
    warm = warm_up(source.model, source.keeper, orders, gold=map(trajectory, range(4)))
    assert (warm.tried, warm.passed) == (1, 0)
    assert [one.state for one in warm.distilled] == ["active"]
    FrozenEngine().train(source.model, source, steps=1)
    (record,) = source.records
    assert (record.library.composites, record.library.max_depth) == (1, 1)
    assert record.library.mean_depth == 1
    assert record.rollouts.reward_parts == {"passed": 0.0, "saved_calls": 0.0}


def test_gold_trajectories_are_written_anew_with_composites(warm):
    """Where a composite of the library fits, one call stands for several; other gold stays."""
    (one,) = distil(warm, map(trajectory, range(4)))
    gold = {str(number): trajectory(number) for number in range(4)}
    other = replace(gold["0"], episode_id="other", turns=gold["0"].turns[1:])
    shorter = shortened({**gold, "other": other}, warm.load())
    assert shorter["other"] is other
    turns = shorter["1"].turns
    ((call,), ()) = (turn.message.tool_calls for turn in turns)
    assert call.name == one.tool
    assert sorted(call.arguments.values()) == [3, 4, 7]
    assert turns[-1] == gold["1"].turns[-1]


def test_a_flat_library_makes_no_tool_of_made_tools(warm):
    """Without the DAG a composite that recurs beside a primitive is no part of another one."""
    (one,) = distil(warm, map(trajectory, range(4)))
    library = warm.load()
    gold = {str(number): trajectory(number) for number in range(4)}
    later = []
    for number, episode in enumerate(shortened(gold, library).values()):
        call = episode.turns[0].message.tool_calls[0]
        total = float(episode.output)
        second = ToolCall(call_id="2", name="sub", arguments={"a": total, "b": 1 + number})
        values = [(call, total), (second, total - 1 - number)]
        turns = [
            Turn(
                message=AssistantMessage(tool_calls=(made,)),
                results=(
                    ToolResult(call_id=made.call_id, name=made.name, status="ok", value=value),
                ),
            )
            for made, value in values
        ]
        last = str(total - 1 - number)
        end = Turn(message=AssistantMessage(text=last))
        later.append(
            replace(episode, episode_id=f"later-{number}", turns=(*turns, end), output=last)
        )
    assert distil(warm, later, flat=True) == ()
    (deeper,) = distil(warm, later)
    assert deeper.state == "active"
    children = warm.load()[deeper.tool].definition.signature.children
    assert one.tool in {child.name for child in children}


def test_composites_are_mined_in_the_loop(orders):
    """With the switch on, what a step's successes have in common is proposed after it."""
    source = run_of(orders, CoevolutionSettings(composites=True))
    profile = source.memory.profile
    episodes = [trajectory(number) for number in range(4)]
    done, _ = source.keeper.decide(episodes, profile)
    assert [one.state for one in done] == ["active"]
    assert len(source.library) == 4
    still = run_of(orders, CoevolutionSettings(composites=True, grows=False))
    assert still.keeper.decide(episodes, profile)[0] == ()
    assert [one.state for one in still.keeper.distil(episodes)] == ["active"]  # in the warm-up
    silent = run_of(orders, CoevolutionSettings(feedback=True), feedback_model=FunctionModel(str))
    assert silent.keeper.decide(episodes, profile)[0] == ()


def test_a_teacher_writes_composites_from_successes(orders):
    """A function of a model is tried by the Tool Manager, and is a tool when it does what it says."""
    teacher = ScriptedModel([f"```python\n{WRITTEN}\n```"], name="teacher")
    source = run_of(orders, CoevolutionSettings(composites=True, support=9), teacher=teacher)
    done, _ = source.keeper.decide([trajectory(1)], source.memory.profile)
    assert [(one.tool, one.stream, one.state) for one in done] == [
        ("order_total", "composite", "active")
    ]
    assert source.library["order_total"].definition.is_composite


def test_a_flat_library_has_a_teacher_use_primitives_alone(orders):
    """Without the DAG a function that calls a made tool is not taken."""
    deeper = WRITTEN.replace("order_total", "order_pair").replace('"result": 14', '"result": 28')
    deeper = deeper.replace("add(mul(price, count), fee)", "mul(order_total(price, count, fee), 2)")
    for flat, states in ((True, {"rejected"}), (False, {"active"})):
        teacher = ScriptedModel([f"```python\n{deeper}\n```"] * 9, name="teacher")
        settings = CoevolutionSettings(composites=True, support=9, flat=flat)
        source = run_of(orders, settings, teacher=teacher)
        assert source.keeper.manager.insert(WRITTEN).outcome == "added"
        done, _ = source.keeper.decide([trajectory(1)], source.memory.profile)
        assert {one.state for one in done} == states


def test_what_a_teacher_gets_wrong_is_a_record(orders):
    """Wrong results, foreign code and silence are told with their reasons, and the run goes on."""
    wrong = WRITTEN.replace('"result": 14', '"result": 15')
    foreign = "def f(a: int) -> int:\n    import os\n    return add(a, a)"
    for said in ([f"```python\n{wrong}\n```"] * 9, [f"```python\n{foreign}\n```", "NOTHING"], []):
        teacher = ScriptedModel(said, name="teacher")
        source = run_of(orders, CoevolutionSettings(composites=True, support=9), teacher=teacher)
        done, _ = source.keeper.decide([trajectory(1)], source.memory.profile)
        assert {one.state for one in done} == {"rejected"}
        assert all(one.why and one.codes for one in done)
        assert source.library.version == 1


def test_what_a_run_learned_is_exported(orders, tmp_path):
    """The keeper's store is what is handed over: the artifact holds the composite, with history."""
    source = run_of(orders, CoevolutionSettings(composites=True))
    source.keeper.decide([trajectory(n) for n in range(4)], source.memory.profile)
    export_library(source.keeper.store, tmp_path / "library.json")
    artifact = read_artifact(tmp_path / "library.json")
    assert artifact.library.digest == source.library.digest
    assert artifact.has_history
