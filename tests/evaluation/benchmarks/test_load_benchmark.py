"""Loading tasks by name or path, with the world that they act in."""

from __future__ import annotations

import textwrap

import pytest

from agentkit.errors import DatasetError, UsageError
from agentkit.evaluation import Task, ToolsEnvironment, environment_from, load_tasks, task_files
from agentkit.evaluation.task_files import PUBLIC, load_benchmark


@pytest.fixture
def no_plugins(monkeypatch):
    """As where agentkit-bench is not installed."""
    monkeypatch.setattr(task_files, "named_benchmarks", dict)


def test_an_environment_may_be_named(shop):
    """The world of a file's tasks may be given as the place of a class."""
    tasks = str(shop / "shop_tasks.jsonl")
    benchmark = load_benchmark(tasks, environment=str(shop / "shop.py"))
    assert (len(benchmark.tasks), benchmark.left_out) == (10, ())


def test_a_file_without_a_task_raises_with_the_first_reason(write, row):
    """Nothing to ask is an error here, and says what is wrong with the rows."""
    path = write(row(expects={}), row(id="u", expects={}))
    with pytest.raises(DatasetError, match="none of its 2 rows can be asked; the first: tasks"):
        load_benchmark(str(path))


@pytest.mark.parametrize("name", PUBLIC)
def test_public_benchmarks_name_their_plugin(name, no_plugins):
    """Without the plugin each says what to install."""
    with pytest.raises(UsageError, match=f"{name} needs the plugin .* pip install agentkit-bench"):
        load_benchmark(name)


WORLD = """
    from agentkit import tool

    class Lamp:
        '''A lamp that may be on.'''

        def __init__(self, task):
            self.on = bool(task.start["on"])

        def tools(self):
            return [tool(self.switch)]

        def switch(self, on: bool) -> str:
            '''Switch the lamp.'''
            self.on = on
            return "done"

        def state(self):
            return {"on": self.on}
"""
TASK = Task(task_id="t", category="c", request="?", offered=(), start={"on": True})


@pytest.fixture
def python_file(tmp_path):
    """Writes a Python file and gives its path."""

    def written(text, name="world.py"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return str(path)

    return written


def test_the_only_class_of_a_file_is_taken(python_file):
    """A class with tools() and state() is found without its name, and takes the task."""
    place = python_file(WORLD)
    for target in (place, f"{place}:Lamp"):
        world = environment_from(target)(TASK)
        assert world.state() == {"on": True}
        assert [one.name for one in world.tools()] == ["switch"]


def test_every_attempt_has_its_own_world(python_file):
    """What is done in one world is not seen in another."""
    make = environment_from(python_file(WORLD))
    first, second = make(TASK), make(TASK)
    first.tools()[0](on=False)
    assert (first.state(), second.state()) == ({"on": False}, {"on": True})


def test_a_file_of_tools_is_a_world_without_state(python_file):
    """Functions with @tool and no class make an environment that is always empty."""
    text = "from agentkit import tool\n@tool\ndef one() -> int:\n    '''One.'''\n    return 1\n"
    place = python_file(text + "mine = [one]\nodd = [one, 7]\nnone = []\n")
    for target in (place, f"{place}:mine"):
        world = environment_from(target)(TASK)
        assert ([tool.name for tool in world.tools()], world.state()) == (["one"], {})
    for name in ("odd", "none"):
        with pytest.raises(UsageError, match="expected nothing but tools"):
            environment_from(f"{place}:{name}")


@pytest.mark.parametrize(
    ("text", "name", "reason"),
    [
        ("x = 1", "", "found these classes: none"),
        (WORLD + WORLD.replace("Lamp", "Fan"), "", "found these classes: Fan, Lamp; say which"),
        (WORLD, ":Fan", "has no 'Fan'; it has: Lamp, tool"),
        ("x = 1", ":x", "x has to be a class or a function that takes one argument, the task"),
        (WORLD.replace("self, task", "self"), "", "Lamp does not take the task"),
        (WORLD.replace("self, task", "self"), ":Lamp", "write def __init__"),
        ("1 / 0", "", r"cannot be imported \(ZeroDivisionError"),
    ],
)
def test_what_makes_no_world_is_refused(python_file, text, name, reason):
    """The message says what was found and what to write."""
    with pytest.raises(UsageError, match=reason):
        environment_from(python_file(text) + name)


def test_tasks_offer_the_tools_of_their_world(python_file, write, row):
    """Tools come from the environment; a task that it does not take is left out with the reason."""
    rows = (row(start={"on": False}), row(id="u"))
    benchmark = load_tasks(write(*rows), environment=environment_from(python_file(WORLD)))
    assert [task.offered for task in benchmark.tasks] == [("switch",)]
    assert [definition.name for definition in benchmark.definitions] == ["switch"]
    (left,) = benchmark.left_out
    assert "the environment does not take the task 'u' (KeyError: 'on')" in left.reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("'''Switch the lamp.'''", "'''Turn.'''"), ""),
        (('return {"on": self.on}', 'return {"on": float("nan")}'), "ValueError"),
        (('return {"on": self.on}', 'return {"on": object()}'), "TypeError"),
        (("return [tool(self.switch)]", "return [self.switch]"), "make it one with tool(...)"),
    ],
)
def test_a_world_that_can_not_be_judged_is_found_early(python_file, write, row, change, reason):
    """A state that is no JSON, or tools that are none, are told before anything is asked."""
    make = environment_from(python_file(WORLD.replace(*change)))
    benchmark = load_tasks(write(row(start={"on": True})), environment=make)
    assert reason in "".join(map(str, benchmark.left_out))
    assert bool(benchmark.tasks) == (not reason)


def test_worlds_that_differ_in_a_definition_are_told(write, row, tools):
    """One name stands for one definition in a benchmark."""
    other = tools[1].with_definition(tools[1].definition.from_schema("add", "Other.", {}))
    worlds = iter([tools[:1], [other]])
    rows = (row(), row(id="u"))
    benchmark = load_tasks(write(*rows), environment=lambda _: ToolsEnvironment(next(worlds)))
    assert len(benchmark.tasks) == 1
    assert "another definition here than for an earlier task" in str(benchmark.left_out[0])


def test_two_different_tools_of_one_name_are_refused(write, row, tools):
    """Given tools are the caller's own, so a clash raises."""
    other = tools[1].with_definition(tools[1].definition.from_schema("add", "Other.", {}))
    with pytest.raises(UsageError, match="two different tools are named 'add'"):
        load_tasks(write(row()), tools=[tools[0], other])
