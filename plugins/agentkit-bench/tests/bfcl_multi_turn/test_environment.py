"""The world of one attempt."""

from __future__ import annotations

import json
import threading
from decimal import getcontext
from functools import partial

import pytest

from agentkit.errors import DatasetError, ToolFailed
from agentkit_bench.bfcl_multi_turn import load_bfcl_multi_turn


@pytest.fixture
def world(sample, task_of):
    """The world of a task, with a function for each of its tools."""

    def made(task_id):
        environment = sample.environment(task_of(task_id))
        return environment, functions(environment)

    return made


def called(environment, tool, /, **arguments):
    """The result of a call."""
    return environment.call(tool, arguments)


def functions(environment):
    """The tools of a world as functions of keywords."""
    return {tool.name: partial(called, environment, tool.name) for tool in environment.tools()}


def test_each_attempt_has_a_world_of_its_own(world):
    """What one attempt does is not seen by another."""
    first, tools = world("multi_turn_base_0")
    second, _ = world("multi_turn_base_0")
    before = second.state()
    assert first.state() == before
    tools["shred"](title="Note")
    assert second.state() == before != first.state()


def test_the_start_of_the_task_is_not_changed(world, task_of):
    """The same task starts alike however often it is tried."""
    before = json.dumps(task_of("multi_turn_base_0").start)
    _, tools = world("multi_turn_base_0")
    tools["file_paper"](title="Plan", text="Soon.")
    assert json.dumps(task_of("multi_turn_base_0").start) == before


def test_state_is_public_attributes_by_class(world):
    """Names with an underscore, and the way up from a drawer, are left out; all of it is JSON."""
    environment, tools = world("multi_turn_base_0")
    tools["stamp"](number=11)
    tools["stamp"](number=2)
    state = environment.state()
    assert json.loads(json.dumps(state)) == state
    assert state == {
        "FilingCabinet": {
            "long_context": False,
            "owner": "Kari",
            "stamps": [2, 11],
            "by_number": {"[7]": "lease"},
            "drawers": {
                "desk": {"name": "desk", "papers": {"Note": "Call Ola.", "Lease": "Until May."}},
                "archive": {"name": "archive", "papers": {}},
            },
        }
    }


def test_a_stateless_class_has_no_state(world):
    """It needs no start and stands in the state without attributes."""
    environment, _ = world("multi_turn_base_1")
    assert environment.state()["Counter"] == {}


@pytest.mark.parametrize(
    ("tool", "arguments", "result"),
    [
        ("list_papers", {}, {"titles": ["Note", "Lease"]}),
        ("read_paper", {"title": "Lease"}, "Until May."),
        ("file_paper", {"title": "Plan"}, "None"),
        ("stamp", {"number": 3}, "[3]"),
        ("exact", {"number": "1.50"}, "{'result': Decimal('1.50')}"),
        ("open_drawer", {"drawer": "café"}, {"error": "there is no drawer café"}),
        ("divide", {"a": 1e308, "b": 1e-308}, '{"result": Infinity}'),
    ],
)
def test_results_are_data_or_upstream_text(world, tool, arguments, result):
    """A dict is data where JSON can hold it; all else is the text that upstream makes of it."""
    _, tools = world("multi_turn_base_1")
    assert tools[tool](**arguments) == result


def test_a_result_does_not_change_later(world):
    """A simulator may return its own tables; what the call gave is what they were then."""
    _, tools = world("multi_turn_long_context_0")
    before = tools["count_spares"]()
    tools["take_spare"](count=1)
    assert before == {"sheets": 500}


def test_what_a_tool_raises_is_passed_on(world):
    """The executor turns it into a failed result."""
    _, tools = world("multi_turn_base_1")
    with pytest.raises(ZeroDivisionError):
        tools["divide"](a=1, b=0)
    with pytest.raises(TypeError):
        tools["divide"](a=1)


def test_a_long_context_starts_with_more(world):
    """The simulators are told, and add what they have."""
    environment, _ = world("multi_turn_long_context_0")
    papers = environment.state()["FilingCabinet"]["drawers"]["desk"]["papers"]
    assert papers["spares"] == {"sheets": 500}


def test_tables_of_a_module_are_not_shared(world):
    """Upstream's simulators put tables of their modules into their state; ours are copies."""
    _, tools = world("multi_turn_long_context_0")
    assert tools["take_spare"](count=20) == {"left": 480}
    second, _ = world("multi_turn_long_context_0")
    left = second.state()["FilingCabinet"]["drawers"]["desk"]["papers"]["spares"]["sheets"]
    assert left == 500


def test_arguments_do_not_become_part_of_the_world(world):
    """A list that a call carries is copied, so the record of the call stays as it was made."""
    environment, tools = world("multi_turn_base_0")
    text = ["a"]
    tools["file_paper"](title="Plan", text=text)
    text.append("b")
    assert environment.state()["FilingCabinet"]["drawers"]["desk"]["papers"]["Plan"] == ["a"]


def test_the_decimal_precision_of_the_program_stays(sample_folder, simulators):
    """Some tools set it; it is back when the call ends."""
    path = sample_folder / "func_source_code" / "counter.py"
    text = path.read_text().replace("import Decimal", "import Decimal, getcontext")
    set_precision = 'getcontext().prec = 2\n        return {"result": +Decimal'
    path.write_text(text.replace('return {"result": Decimal', set_precision))
    benchmark = load_bfcl_multi_turn(sample_folder, simulators=simulators)
    tools = functions(benchmark.environment(benchmark.tasks[1]))
    before = getcontext().prec
    assert tools["exact"](number="1.234") == "{'result': Decimal('1.2')}"
    assert getcontext().prec == before


def test_arithmetic_that_would_never_end_is_refused(world):
    """A power of a billion digits can not be interrupted, so it is not begun."""
    _, tools = world("multi_turn_base_1")
    with pytest.raises(ToolFailed, match="too many digits"):
        tools["power"](base=10, exponent=10**9)
    assert tools["power"](base=2, exponent=10) == {"result": 1024}
    with pytest.raises(OverflowError):
        tools["power"](base=10.0, exponent=10**9)


def test_a_start_that_the_simulator_refuses_is_an_error(sample, task_of):
    """The message names the simulator and what it said."""
    task = task_of("multi_turn_base_0")
    task.start["scenarios"]["FilingCabinet"]["by_number"] = {"seven": ""}
    with pytest.raises(DatasetError, match="FilingCabinet does not take the start"):
        sample.environment(task)


def test_worlds_in_threads_do_not_disturb_each_other(sample, task_of):
    """Attempts side by side end as they would one after the other."""
    states = []

    def attempt(number):
        environment = sample.environment(task_of("multi_turn_base_0"))
        tools = functions(environment)
        for stamp in range(50):
            tools["stamp"](number=number * 100 + stamp)
        states.append((number, environment.state()["FilingCabinet"]["stamps"]))

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(states) == [
        (number, [number * 100 + stamp for stamp in range(50)]) for number in range(4)
    ]
