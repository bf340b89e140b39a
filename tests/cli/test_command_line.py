"""The command line as a whole: how large it is, how options are declared, how commands end, plugins, terminals."""

from __future__ import annotations

import os
import platform
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import agentkit
from agentkit.cli.main import COMMANDS, main
from agentkit.library.opening import open_store

MOST_WORDS = 20
MOST_LEAVES = 32

PLUGIN_WORDS = {"bench"}
"""Commands that plugins of ours bring."""


def leaves(command: click.Command = main, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, with its words."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        assert child is not None
        yield from leaves(child, f"{path} {name}".strip())


CORE = dict(leaves())


def options(command: click.Command) -> Iterator[click.Option]:
    """The options that a command shows."""
    return (one for one in command.params if isinstance(one, click.Option) and not one.hidden)


def test_the_command_line_is_small():
    """Few words at the top, and few commands in all, so that one can know them."""
    assert len(COMMANDS) <= MOST_WORDS
    assert len(CORE) <= MOST_LEAVES, sorted(CORE)


@pytest.mark.parametrize("path", CORE)
def test_every_command_speaks_json(path):
    """Programs can read what each command says."""
    assert any("--json" in option.opts for option in options(CORE[path]))


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["serch", "x"], "No such command 'serch'. Did you mean 'search'?"),
        (["tools", "improt", "x"], "Did you mean 'import'?"),
        (["review", "aprove", "x"], "Did you mean 'approve'?"),
        (["models", "instal", "x"], "Did you mean 'install'?"),
        (["search", "x", "--limt", "1"], "--limit"),
    ],
)
def test_an_unknown_word_is_answered_with_the_nearest(invoke, arguments, hint):
    """A command or an option that was mistyped is named as it was meant."""
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert hint in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["tools", "list", "--store", "sqlite:///absent.db"],
        ["tools", "show", "absent"],
        ["tools", "add", "absent.py"],
        ["check", "absent"],
        ["import", "absent.json"],
        ["store", "copy", "absent.db", "copy.db"],
        ["episodes", "show", "absent"],
        ["models", "install", "absent"],
        ["run", "Hi", "--model", "nobody:x"],
        ["eval", "absent.jsonl"],
    ],
    ids=" ".join,
)
def test_what_is_not_there_is_misuse(invoke, arguments):
    """A file, a store or a name that is missing ends with status 2 and says so in few lines."""
    assert invoke("tools", "import", "--yes", "-", typed='[{"name": "here"}]').exit_code == 0
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Error: " in result.stderr
    assert "Traceback" not in result.stderr


def named_commands(text: str) -> Iterator[tuple[str, ...]]:
    """The words after ``agentkit`` wherever a message, a page or an example names a command."""
    joined = re.sub(r'"\s*\n\s*f?"', "", text)  # a string that goes on in the next line
    for found in re.finditer(r"(?:['`]|\$ )agentkit\s([a-z]+)(?:\s([a-z]+)(?=[\s'`]))?", joined):
        yield tuple(filter(None, found.groups()))


def exists(words: tuple[str, ...]) -> bool:
    """Whether words lead to a command; what follows one that is no group is an argument."""
    command: click.Command | None = main
    for word in words:
        if not isinstance(command, click.Group):
            return True
        command = command.get_command(click.Context(command), word)
    return command is not None or words[0] in PLUGIN_WORDS


def test_every_command_that_is_named_exists(project_root):
    """No message and no page sends anybody to a command that is gone."""
    files = [*project_root.glob("agentkit/**/*.py"), *project_root.glob("docs/*.md")]
    files += [project_root / "README.md", *project_root.glob("plugins/*/README.md")]
    gone = {
        (path.relative_to(project_root).as_posix(), " ".join(words))
        for path in files
        for words in named_commands(path.read_text(encoding="utf-8"))
        if not exists(words)
    }
    assert gone == set()
    assert not exists(("tools", "compose"))  # the check can fail
    assert list(named_commands("'agentkit tools compose' makes one")) == [("tools", "compose")]


def test_the_version_is_that_of_the_package(invoke):
    """``--version`` and ``-V`` print one line with that of Python."""
    line = f"agentkit {agentkit.__version__}, Python {platform.python_version()}\n"
    assert invoke("--version").stdout == invoke("-V").stdout == line


def test_every_command_is_on_the_help_page(invoke):
    """The help page lists each command with a sentence, and each one has help of its own."""
    page = invoke("--help").stdout
    for name, (_, words) in COMMANDS.items():
        assert words in page
        assert invoke(name, "--help").exit_code == 0


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
def environment(tmp_path, store_url, plug_in):
    """A process environment with a model plugin that never answers."""
    entry = "[agentkit.models]\nslow = agentkit_slow:open_slow\n"
    return {
        **os.environ,
        "PYTHONPATH": str(plug_in("agentkit_slow", PLUGIN, entry)),
        "AGENTKIT_STORE": store_url,
        "AGENTKIT_TEST_STARTED": str(tmp_path / "started"),
    }


def test_ctrl_c_keeps_the_episode(environment, store_url, tmp_path):
    """Interrupted in the middle of an answer: status 130, one line, and the episode is kept."""
    process = subprocess.Popen(
        [*PROGRAM, "run", "Hi", "--model", "slow:x"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
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
def install(plug_in):
    """Installs the modules, with an entry point of one."""

    def register(entry):
        for name, text in MODULES.items():
            plug_in(
                f"{name}_words",
                text,
                f"[agentkit.commands]\n{entry}\n" if name == "brought" else "",
            )

    return register


def test_a_plugin_brings_a_command(invoke, install):
    """It stands on the help page by its place, without being imported, and runs when typed."""
    install("shout = brought_words:shout")
    page = invoke("--help").stdout
    assert "Commands of plugins:" in page
    assert "shout" in page.partition("Commands of plugins:")[2]
    assert "brought_words" not in sys.modules
    assert invoke("shout").stdout == "HELLO\n"


def test_a_broken_plugin_is_one_line(invoke, install):
    """What is wrong is said when the command is typed; the help page and others still work."""
    install("shout = torn_words:shout")
    result = invoke("shout")
    assert result.exit_code == 1
    assert "ModuleNotFoundError: No module named 'nothing_of_this_name'" in result.stderr
    assert result.stderr.count("\n") == 1
    assert "shout" in invoke("--help").stdout
    assert invoke("--version").exit_code == 0


def test_the_pip_line_of_an_absent_plugin_is_told(invoke, monkeypatch):
    """A word of a plugin of ours that is not installed names what to install."""
    monkeypatch.setattr("agentkit.cli.boundary._plugins", tuple)
    result = invoke("bench", "retrieval")
    assert result.exit_code == 2
    assert "Run: pip install agentkit-bench" in result.stderr
