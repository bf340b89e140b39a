"""A small multi-turn benchmark of ours, agents that play it, and upstream's package if it is there."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from agentkit import Agent
from agentkit.agent.types import Limits
from agentkit.evaluation.verifiers import AllOf, Scene, verifier_for
from agentkit.fetch import cache_directory
from agentkit.library import Library
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel
from agentkit_bench.bfcl import RELEASE
from agentkit_bench.bfcl_multi_turn import installed_bfcl, load_bfcl_multi_turn

SAMPLE = Path(__file__).parent / "sample"
SIMULATORS = {"FilingCabinet": "cabinet", "Counter": "counter"}


@pytest.fixture
def simulators():
    """The simulated classes of the sample, and their modules."""
    return dict(SIMULATORS)


@pytest.fixture
def sample_folder(tmp_path):
    """A copy of the sample that a test may change."""
    ignore = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(SAMPLE, tmp_path / "sample", ignore=ignore)


@pytest.fixture
def sample(sample_folder):
    """The sample, loaded."""
    return load_bfcl_multi_turn(sample_folder, simulators=SIMULATORS)


@pytest.fixture
def task_of(sample):
    """One task by its id."""
    tasks = {task.task_id: task for task in sample.tasks}
    return tasks.__getitem__


@pytest.fixture
def calls():
    """Tool calls from pairs of a name and arguments."""

    def made(*pairs):
        return [
            ToolCall(call_id=str(at), name=name, arguments=arguments)
            for at, (name, arguments) in enumerate(pairs)
        ]

    return made


@pytest.fixture
def play(sample):
    """Plays a task with an agent: the model's answers of each user turn give its verdicts."""

    async def played(task, *answers, max_steps=21, definition=lambda own: own):
        world, reference = sample.environment(task), sample.environment(task)
        offered, episodes, verdicts, said = [], [], [], ()
        for turn, script in zip(task.turns, answers, strict=True):
            offered += turn.offers
            tools = {tool.name: tool for tool in world.tools()}
            agent = Agent(
                ScriptedModel([*script, "Done."]),
                library=Library(
                    tools[name].with_definition(definition(tools[name].definition))
                    for name in offered
                ),
                retriever=None,
                limits=Limits(max_steps=max_steps, max_calls=1000),
            )
            said = await agent.run(turn.request, history=said)
            scene = Scene(environment=world, reference=reference, earlier=tuple(episodes))
            parts = [verifier_for(one, scene) for one in turn.expects]
            verdicts.append(await AllOf(parts).verify(said.episode) if parts else None)
            episodes.append(said.episode)
        return SimpleNamespace(verdicts=verdicts, episodes=episodes, world=world)

    return played


@pytest.fixture(scope="session")
def upstream_folder():
    """The real questions: in the cache of fetched files, or in an installed package."""
    cached = cache_directory() / f"bfcl-multi-turn-{RELEASE}"
    folder = cached if cached.is_dir() else installed_bfcl()
    if folder is None:
        pytest.skip("BFCL's multi-turn part is not here; fetch_bfcl_multi_turn() brings it")
    return folder


@pytest.fixture(scope="session")
def mpmath():
    """What one of the real simulators computes with."""
    if importlib.util.find_spec("mpmath") is None:
        pytest.skip('mpmath is not installed; run: pip install "agentkit-bench"')


@pytest.fixture
def upstream_package(monkeypatch):
    """The package's folder, importable: installed, or below the folder in AGENTKIT_BFCL_EVAL."""
    named = os.environ.get("AGENTKIT_BFCL_EVAL")
    if named:
        monkeypatch.syspath_prepend(named)
    folder = installed_bfcl()
    if folder is None:
        pytest.skip(
            "bfcl_eval is not installed; pip install --no-deps --target FOLDER bfcl_eval mpmath, "
            "and name the folder in AGENTKIT_BFCL_EVAL"
        )
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if name.partition(".")[0] == "bfcl_eval":
            del sys.modules[name]
