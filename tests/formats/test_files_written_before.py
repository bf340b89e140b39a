"""Files and databases that an earlier release wrote open, and say the same as on that day.

``written_2026_11`` was made by agentkit 0.1.0 (commit d60dd8b): ``agentkit init``, ``eval`` and ``evolve``
with the model double of ``tests/test_loop.py``, two functions and two composites with ``tools add``, two
runs, ``rollback``, ``rollback --pin`` and ``--unpin``; then ``store copy`` into a directory, ``export`` with
and without history, and ``episodes export``. ``expected.json`` was read by that commit.
"""

import json
import runpy
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from agentkit import Agent, open_store
from agentkit.cli.loading import load_tools
from agentkit.cli.main import main
from agentkit.diagnosis import FailureProfile
from agentkit.evaluation import load_tasks
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel

WRITTEN = Path(__file__).parent / "written_2026_11"
EXPECTED = json.loads((WRITTEN / "expected.json").read_text())


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A copy of the files, as the working directory."""
    shutil.copytree(WRITTEN, tmp_path / "written")
    for name in ("AGENTKIT_STORE", "AGENTKIT_MODEL", "AGENTKIT_AUDIT_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path / "written")
    return tmp_path / "written"


def printed(*words):
    """What a command prints as JSON."""
    done = CliRunner().invoke(main, [*words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def digests_by_version(url):
    """The library's digest, and that of each definition, in every version of a store."""
    store = open_store(url)
    try:
        return {
            str(version): {
                "library": library.digest,
                "tools": {tool.name: tool.definition.digest for tool in library},
            }
            for version in store.versions()
            for library in [store.load(version)]
        }
    finally:
        store.close()


@pytest.mark.parametrize("url", ["sqlite:///library.db", "dir:directory"])
def test_every_version_of_a_store_has_the_digests_of_then(written, url):
    """Definitions are held by digest; each version of an old store loads with the same ones."""
    assert digests_by_version(url) == EXPECTED["versions"]


@pytest.mark.parametrize("url", ["sqlite:///library.db", "dir:directory"])
def test_the_chain_of_old_events_is_whole(written, url):
    """The hash chain of events verifies, and its last link is the one of then."""
    found = printed("log", "--verify", "--store", url)
    assert found == EXPECTED["verified"]


def test_the_newest_version_is_the_only_one_in_an_artifact_without_history(written):
    """An artifact opens like a store; the one without history holds the newest library."""
    newest = max(EXPECTED["versions"], key=int)
    store = open_store("artifact:plain.json")
    tools = {tool.name: tool.definition.digest for tool in store.load()}
    assert tools == EXPECTED["versions"][newest]["tools"]


def test_an_artifact_with_history_restores_its_store(written):
    """``store copy`` makes the store again, versions and events included."""
    printed("store", "copy", "artifact:artifact.json.gz", "sqlite:///restored.db")
    assert digests_by_version("sqlite:///restored.db") == EXPECTED["versions"]


def test_old_composites_run(written):
    """Programs that were stored then are read, checked and run now, loops and branches included."""
    tools = runpy.run_path("sums.py")
    library = open_store("sqlite:///library.db").load()
    library = library.bind([tools["monthly_rate"], tools["with_tax"]])
    for name, arguments, result in EXPECTED["composites"]:
        call = ToolCall(call_id="1", name=name, arguments=arguments)
        done = Agent(ScriptedModel([[call], "done"]), library=library).run_sync("go")
        assert done.episode.results[0].value == result


@pytest.mark.parametrize("file", ["episodes.jsonl.gz", "episodes.parquet"])
def test_old_episodes_are_imported(written, file):
    """Episodes of both forms keep their ids, requests, verdicts and calls."""
    printed("import", file, "--store", "sqlite:///new.db")
    store = open_store("sqlite:///new.db")
    assert sorted(one.episode_id for one in store.select()) == EXPECTED["episodes"]
    assert all(one.verdict and one.diagnosis and one.calls for one in store.select())


def test_an_old_profile_is_read(written):
    """A failure profile that was kept as JSON has the same labels, and says the same again."""
    record = json.loads(Path("profile.json").read_text())
    profile = FailureProfile.from_json(record)
    labels = {label: round(share, 6) for label, share in profile.label_distribution().items()}
    assert labels == EXPECTED["profile"]
    assert profile.to_json() == record


def test_an_old_project_is_read(written):
    """The settings and tasks of an old project are read as they are."""
    found = printed("tools", "list", "--store", "sqlite:///library.db")
    newest = max(EXPECTED["versions"], key=int)
    assert {one["name"] for one in found} == set(EXPECTED["versions"][newest]["tools"])
    tools = load_tools(["tools.py"])
    assert len(load_tasks(Path("tasks.jsonl"), tools=tools).tasks) == 32
