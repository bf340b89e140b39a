"""The command line as a whole: how large it is, and the manners that every command keeps."""

from __future__ import annotations

import platform
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

import click
import pytest
from click.testing import CliRunner

import agentkit
from agentkit.cli.main import COMMANDS, main

MOST_WORDS = 20
MOST_LEAVES = 32

PLUGIN_WORDS = {"bench"}
"""Commands that plugins of ours bring."""

ONE_MEANING: Mapping[str, str] = {
    "--answers": "where answers of evaluations are kept",
    "--concurrency": "how many tasks at the same time",
    "--dry-run": "nothing is written; what would be is told",
    "--exit-code": "exit status 1 where something is found",
    "--format": "the form of the file that is read or written",
    "--json": "JSON instead of words",
    "--judge": "the model that judges what has no exact answer",
    "--key-file": "the key of signatures",
    "--limit": "the most that are shown",
    "--max-steps": "model turns in answer to one request",
    "--max-tokens": "the longest answer",
    "--on-conflict": "what becomes of a name that is taken; import proposes where others replace",
    "--output": "the file to write",
    "-o": "the file to write",
    "--own": "the episodes are of one's own agents",
    "--pin": "the library version that is held",
    "--refine": "how the model looks over its calls",
    "--run": "the name of an evaluation's run",
    "--seed": "what draws the sample",
    "--session": "the conversation",
    "--shadow": "proposals are tried unseen",
    "--store": "the store; demo has one of its own",
    "--tool": "only this tool",
    "--tool-choice": "whether the model may or must call",
    "--tools": "Python code of tools",
    "--yes": "nobody is asked",
}
"""Options whose help differs from command to command, and the one meaning that is behind it."""


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


def test_an_option_has_one_meaning():
    """An option of one name is told in the same words everywhere, or is listed with what it means.

    It is a flag in all commands or in none, and takes one kind of value.
    """
    words: dict[str, set[str]] = defaultdict(set)
    flags: dict[str, set[bool]] = defaultdict(set)
    for command in CORE.values():
        for option in options(command):
            for name in option.opts:
                words[name].add(" ".join((option.help or "").split()))
                flags[name].add(bool(option.is_flag))
    assert {name for name, texts in words.items() if len(texts) > 1} <= set(ONE_MEANING)
    assert {name for name, kinds in flags.items() if len(kinds) > 1} == set()
    assert set(ONE_MEANING) <= set(words)


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
        ["tools", "list", "--at", "9"],
        ["tools", "list", "--store", "nonsense"],
        ["tools", "no-such-command"],
        ["episodes", "list", "--verdict", "maybe"],
        ["tools", "add", "--composite", "absent.py"],
        ["check", "absent"],
        ["import", "absent.json"],
        ["export", "absent"],
        ["store", "copy", "absent.db", "copy.db"],
        ["episodes", "show", "absent"],
        ["log", "--tool", "absent"],
        ["rollback", "absent"],
        ["models", "install", "absent"],
        ["run", "Hi", "--model", "nobody:x"],
        ["eval", "absent.jsonl"],
    ],
    ids=" ".join,
)
def test_what_is_not_there_is_misuse(invoke, arguments):
    """A file, a store or a name that is missing ends with status 2 and says so in few lines."""
    assert invoke("tools", "import", "-", typed='[{"name": "here"}]').exit_code == 0
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


WIDTH = 80


def groups(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The names that lead to each group of commands, the outermost first."""
    yield path
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from groups(command, (*path, name))


@pytest.mark.parametrize("path", list(groups(main)), ids=lambda path: " ".join(path) or "agentkit")
def test_no_summary_in_a_list_of_commands_is_cut_off(path) -> None:
    """A reader sees in one line what each command is for, to its end."""
    page = CliRunner().invoke(main, [*path, "--help"], terminal_width=WIDTH).output
    listed = page.partition("\nCommands:\n")[2].partition("\n\n")[0].splitlines()
    assert listed
    assert [line for line in listed if line.endswith("...") or len(line) > WIDTH] == []
