"""A library with its tasks, trained on by others: loaded and scored with the real ``verifiers``."""

import json

import pytest

from agentkit_training.tasks.hidden_constraints.family import gold_calls

vf = pytest.importorskip("verifiers.v1", reason="verifiers is not installed")
from agentkit_training.tasks import verifiers_taskset as taskset  # noqa: E402 - needs verifiers

LOANS = {"source": "hidden-constraints", "kinds": ["enum"], "train": 1}


@pytest.fixture
def task():
    """The first of some tasks, a loan."""
    config = taskset.LibraryTasksetConfig(tasks=LOANS, reward="R2")
    (found,) = taskset.LibraryTaskset(config).take(1)
    return found


def gold(task):
    (call,) = gold_calls(task.data.benchmark().tasks[0])
    return call.name, dict(call.arguments)


def trace_of(task, *arguments):
    """A rollout whose calls have these arguments, written as a trainer would hand it over."""
    name, _ = gold(task)
    trace = vf.Trace(
        task=vf.TraceTask(type=type(task).__name__, data=task.data),
        agent=vf.AgentInfo(config=vf.AgentConfig()),
    )
    said = [vf.UserMessage(content=task.data.prompt)]
    for number, one in enumerate(arguments):
        call = vf.ToolCall(id=str(number), name=name, arguments=one)
        said += [vf.AssistantMessage(tool_calls=[call])]
        said += [vf.ToolMessage(tool_call_id=str(number), content="as it was")]
    for number, message in enumerate(said):
        parent = number - 1 if number else None
        is_sampled = message.role == "assistant"
        trace.nodes.append(vf.MessageNode(parent=parent, message=message, sampled=is_sampled))
    return trace


@pytest.mark.parametrize(
    ("changed", "worth"), [({}, 1.0), ({"term": 37}, 0.5), ("no arguments", -1.0)]
)
async def test_a_rollout_is_scored_by_our_verifiers(task, changed, worth):
    """What counts is what its calls do in a fresh world, in the parts of the reward asked for."""
    arguments = changed if isinstance(changed, str) else json.dumps({**gold(task)[1], **changed})
    trace = trace_of(task, arguments)
    await task.score(trace)
    assert trace.reward == pytest.approx(worth)
    assert set(trace.rewards) >= {"tool_name", "param_value"}


async def test_tools_are_served_from_a_world_of_the_rollout(task):
    """They have the library's schemas, and a refusal reads as it does in our runtime."""
    from mcp.server.mcpserver import MCPServer

    server, tools = MCPServer("tools"), task.toolsets(task.config)[0]
    await tools.setup_task(type(task.data).model_validate_json(task.data.model_dump_json()))
    tools.register(server)
    (offered,) = await server.list_tools()
    name, arguments = gold(task)
    assert offered.name == name
    assert offered.input_schema["properties"]["term"]["description"] == "How long it runs."
    for term, told in ((arguments["term"], "done"), (37, "term must be one of 36, 48, 60")):
        answer = await server.call_tool(name, {**arguments, "term": term})
        assert told in answer.content[0].text


def test_a_package_of_ones_own_names_the_tasks(tmp_path, monkeypatch):
    """Verifiers finds taskset and configuration by the package's name, with its defaults."""
    from verifiers.v1.utils.loaders import load_taskset, taskset_config_type

    (tmp_path / "my_loans.py").write_text(
        "import verifiers.v1 as vf\n"
        "from agentkit_training.tasks.verifiers_taskset import (\n"
        "    LibraryTask, LibraryTaskset, LibraryTasksetConfig)\n"
        f"class Config(LibraryTasksetConfig):\n    tasks: dict = {LOANS}\n"
        "class Loans(LibraryTaskset, vf.Taskset[LibraryTask, Config]): ...\n"
        "__all__ = ['Loans']\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    config = taskset_config_type("my-loans").model_validate({"id": "my-loans"})
    assert [one.data.idx for one in load_taskset(config)] == [0]
