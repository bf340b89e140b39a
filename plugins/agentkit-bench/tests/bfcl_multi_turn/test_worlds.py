"""Simulators as worlds: their state, their bounds, what is observed of them."""

from __future__ import annotations

import json
import threading
from functools import partial
from types import SimpleNamespace

import pytest

from agentkit.errors import DatasetError, ToolFailed
from agentkit_bench.bfcl_simulators import (
    SimulatorModules,
    refusal,
)


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


def test_what_a_tool_raises_is_passed_on(world):
    """The executor turns it into a failed result."""
    _, tools = world("multi_turn_base_1")
    with pytest.raises(ZeroDivisionError):
        tools["divide"](a=1, b=0)
    with pytest.raises(TypeError):
        tools["divide"](a=1)


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


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("power", {"base": 10, "exponent": 10**9}, "10 to the power 1000000000"),
        ("power", {"base": -3, "exponent": 10**400}, "a number of 1329 bits"),
        ("logarithm", {"value": 2, "base": 10, "precision": 10**8}, "precision is 100000000"),
        ("square_root", {"number": 2, "precision": 10**5}, "give at most 10000"),
        (
            "round_number",
            {"number": 5, "decimal_places": -(10**9)},
            "decimal_places is -1000000000",
        ),
    ],
)
def test_hopeless_arguments_are_refused_in_words(tool, arguments, words):
    """The refusal says which argument it is about and what is allowed."""
    assert words in refusal(tool, arguments, SimpleNamespace())


def test_a_refused_call_is_not_made(world):
    """The tool fails in words; what can end is run, also where it overflows."""
    _, tools = world("multi_turn_base_1")
    with pytest.raises(ToolFailed, match="too many digits"):
        tools["power"](base=10, exponent=10**9)
    assert tools["power"](base=2, exponent=10) == {"result": 1024}


@pytest.fixture
def code(sample_folder):
    """The folder with the sample's simulators."""
    return sample_folder / "func_source_code"


def test_modules_find_each_other(code):
    """An import under upstream's name gives the module that lies beside; it is loaded once."""
    modules = SimulatorModules(code)
    cabinet = modules.load("cabinet")
    assert cabinet.SPARE_PAPERS is modules.load("spare_papers").SPARE_PAPERS
    assert modules.load("cabinet") is cabinet


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("def (", "SyntaxError"),
        ("import no_such_package_anywhere", "no_such_package_anywhere"),
        (
            "from bfcl_eval.eval_checker.multi_turn_eval.func_source_code.gone import X",
            "there is no simulator",
        ),
    ],
)
def test_a_broken_simulator_is_an_error_each_time(code, text, reason):
    """The error names the file and the cause, and half a module is not kept."""
    (code / "broken.py").write_text(text)
    modules = SimulatorModules(code)
    for _ in range(2):
        with pytest.raises(DatasetError, match=reason):
            modules.load("broken")
    (code / "broken.py").write_text("MARK = 'mended and longer than before'\n")
    assert modules.load("broken").MARK
