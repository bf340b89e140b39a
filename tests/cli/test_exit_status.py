"""How commands end, and commands that plugins bring."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentkit.library.opening import open_store

PROGRAM = [sys.executable, "-c", "from agentkit.cli.main import main; main(prog_name='agentkit')"]

PLUGIN = """
import asyncio
import os
from pathlib import Path

from agentkit.testing import FunctionModel

async def wait(request):
    Path(os.environ["AGENTKIT_TEST_STARTED"]).touch()
    await asyncio.sleep(100)

def open_slow(name):
    return FunctionModel(wait, name="slow")
"""


@pytest.fixture
def environment(tmp_path, store_url):
    """A process environment with a model plugin that never answers."""
    folder = tmp_path / "plugins"
    info = folder / "agentkit_slow-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "agentkit_slow.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: agentkit-slow\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[agentkit.models]\nslow = agentkit_slow:open_slow\n")
    return {
        **os.environ,
        "PYTHONPATH": str(folder),
        "AGENTKIT_STORE": store_url,
        "AGENTKIT_TEST_STARTED": str(tmp_path / "started"),
    }


@pytest.mark.parametrize("command", [["run", "Hi"], ["chat"]])
def test_ctrl_c_keeps_the_episode(environment, store_url, tmp_path, command):
    """Interrupted in the middle of an answer: status 130, one line, and the episode is kept."""
    process = subprocess.Popen(
        [*PROGRAM, *command, "--model", "slow:x"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdin.write("Hello\n")
    process.stdin.flush()
    started = Path(environment["AGENTKIT_TEST_STARTED"])
    while not started.exists() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    assert "Interrupted" in err
    assert "Traceback" not in err
    store = open_store(store_url)
    kept = list(store.select())
    store.close()
    assert [episode.stop_reason for episode in kept] == ["cancelled"]


def test_a_reader_that_goes_away_is_no_error(environment, tmp_path):
    """`agentkit ... | head -1` prints no trace."""
    catalogue = ",".join(f'{{"name": "tool_{n}", "description": "x"}}' for n in range(3000))
    (tmp_path / "many.json").write_text(f"[{catalogue}]")
    subprocess.run(
        [*PROGRAM, "tools", "import", str(tmp_path / "many.json")],
        env=environment,
        check=True,
        capture_output=True,
    )
    listing = subprocess.Popen(
        [*PROGRAM, "tools", "list", "--json"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert listing.stdout.readline() == "[\n"
    listing.stdout.close()
    err = listing.stderr.read()
    listing.stderr.close()
    listing.wait(timeout=60)
    assert err == ""


def test_an_unexpected_error_is_one_line(invoke, script, tmp_path):
    """A bug in a plugin ends with status 1, its type, and the way to the trace."""
    (tmp_path / "answers.json").write_text("not json")
    result = invoke("run", "Hi", "--model", "script:a")
    assert result.exit_code == 1
    assert "unexpected JSONDecodeError" in result.stderr
    assert "agentkit --debug" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("command", ["--version", "--help"])
def test_quick_commands_load_nothing_heavy(command):
    """The version and the list of commands import neither the agent nor rich."""
    heavy = {"rich", "pydantic", "sqlite3", "httpx", "agentkit.agent.agent"}
    code = (
        "import sys\n"
        "from agentkit.cli.main import main\n"
        f"main(['{command}'], standalone_mode=False)\n"
        f"print(sorted({heavy!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


MODULES = {
    "brought": 'import click\n\n@click.command()\ndef shout():\n    """Say it loudly."""\n    click.echo("HELLO")\n',
    "torn": "import nothing_of_this_name\n",
}


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a distribution that registers commands; gives the folder."""
    folder = tmp_path / "site"
    folder.mkdir()
    for name, text in MODULES.items():
        (folder / f"{name}_words.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))

    def register(name, *entries):
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = "\n".join(("[agentkit.commands]", *entries))
        (info / "entry_points.txt").write_text(f"{lines}\n")

    yield register
    for name in MODULES:
        sys.modules.pop(f"{name}_words", None)


def test_a_plugin_brings_a_command(invoke, install):
    """It stands on the help page by its place, without being imported, and runs when typed."""
    install("brought", "shout = brought_words:shout")
    page = invoke("--help").stdout
    assert "Commands of plugins:" in page
    assert "shout" in page.partition("Commands of plugins:")[2]
    assert "brought_words" not in sys.modules
    assert invoke("shout").stdout == "HELLO\n"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("shout = torn_words:shout", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("shout = brought_words:absent", "AttributeError"),
    ],
)
def test_a_broken_plugin_is_one_line(invoke, install, entry, said):
    """What is wrong is said when the command is typed; the help page and others still work."""
    install("broken", entry)
    result = invoke("shout")
    assert result.exit_code == 1
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert "shout" in invoke("--help").stdout
    assert invoke("--version").exit_code == 0


def test_the_pip_line_of_an_absent_plugin_is_told(invoke, monkeypatch):
    """A word of a plugin of ours that is not installed names what to install."""
    monkeypatch.setattr("agentkit.cli.boundary._plugins", tuple)
    result = invoke("bench", "retrieval")
    assert result.exit_code == 2
    assert "Run: pip install agentkit-bench" in result.stderr
