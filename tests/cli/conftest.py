"""Running commands as a user does, against a store of the test's own."""

import json
from contextlib import closing

import pytest
from click.testing import CliRunner

from agentkit import open_store
from agentkit.cli.main import main


@pytest.fixture
def store_url(tmp_path):
    """The URL of a store that does not exist yet."""
    return f"sqlite:///{tmp_path / 'library.db'}"


@pytest.fixture
def keep(store_url):
    """Keeps episodes in the store."""

    def append(*episodes):
        with closing(open_store(store_url)) as store:
            for episode in episodes:
                store.append(episode)

    return append


@pytest.fixture
def invoke(store_url, tmp_path, monkeypatch):
    """Runs ``agentkit ...`` in an empty folder and gives the result."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENTKIT_STORE", store_url)
    monkeypatch.setenv("AGENTKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments, typed=None):
        return CliRunner().invoke(main, list(arguments), input=typed, catch_exceptions=False)

    return run


@pytest.fixture
def as_json(invoke):
    """Runs a command that must succeed, with --json, and gives what it printed."""

    def run(*arguments):
        result = invoke(*arguments, "--json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return run


PLUGIN = '''
import json
import os
from pathlib import Path

from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel

def open_script(name):
    """The answers in the file; a pair is a call."""
    answers = json.loads(Path(os.environ["AGENTKIT_TEST_SCRIPT"]).read_text())
    return ScriptedModel([answer(at, one) for at, one in enumerate(answers)], name="script")

def answer(at, one):
    if isinstance(one, str):
        return one
    name, arguments = one
    return [ToolCall(call_id=f"c{at}", name=name, arguments=arguments)]
'''


@pytest.fixture
def script(tmp_path, monkeypatch, plug_in):
    """A model plugin, found through its entry point, whose answers a test writes down."""
    plug_in("agentkit_script", PLUGIN, "[agentkit.models]\nscript = agentkit_script:open_script\n")
    answers = tmp_path / "answers.json"
    monkeypatch.setenv("AGENTKIT_TEST_SCRIPT", str(answers))

    def write(*script):
        answers.write_text(json.dumps(script))

    write()
    return write


@pytest.fixture
def tools_file(tmp_path):
    """A Python file with two tools."""
    path = tmp_path / "desk.py"
    path.write_text(
        '''
from agentkit import tool

@tool
def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b

@tool(effects=["destructive"])
def wipe(path: str) -> str:
    """Delete a file."""
    return f"{path} is gone"
'''
    )
    return path
