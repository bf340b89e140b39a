"""Nothing public is missing from the documentation, and no link of it leads nowhere."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import click
import pytest

import agentkit.errors
from agentkit.cli.main import main
from agentkit.episodes import RefineMode, StopReason
from agentkit.messages import FailureKind

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
GENERATED = ["docs/cli.md", "docs/reference.md"]
TEXT = {path: path.read_text(encoding="utf-8") for path in PAGES}
ALL_TEXT = "\n".join(TEXT.values())


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None, f"{path} lists {name}, but has no such command"
            yield from commands(child, f"{path} {name}")


COMMANDS = dict(commands(main, "agentkit"))
ERRORS = [
    name
    for name, value in inspect.getmembers(agentkit.errors, inspect.isclass)
    if issubclass(value, Exception) and value.__module__ == agentkit.errors.__name__
]


def dead_links(path: Path, text: str) -> list[str]:
    """Relative links of a page whose file does not exist; code such as ``f[name](x)`` is no link."""
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "`", text, flags=re.DOTALL | re.MULTILINE)
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", prose)
    return [target for target in targets if not (path.parent / target).exists()]


def unlinked_pages(index: str, names: list[str]) -> list[str]:
    """Pages that the index does not link to."""
    return [name for name in names if f"({name})" not in index]


@pytest.mark.parametrize("path", GENERATED)
def test_generated_pages_are_up_to_date(path: str) -> None:
    """What is generated from the code says what the code says; ``make docs`` writes it anew."""
    command = [sys.executable, "-m", "cogapp", "-I", "docs", "--check", path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"run: make docs\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_is_explained(path: str) -> None:
    """A command, and each of its options, says in its help what it does."""
    command = COMMANDS[path]
    assert command.help, f"{path} has no help"
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert option.help, f"{path} {option.opts[0]} has no help"


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_is_documented(path: str) -> None:
    """The page of the command line has a section for the command."""
    assert f"\n## {path}\n" in TEXT[DOCS / "cli.md"]


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_is_documented(name: str) -> None:
    """The page of errors names the error, and the tree at the top of the module does."""
    assert f"`{name}`" in TEXT[DOCS / "reference.md"]
    assert f"* {name} " in f"{agentkit.errors.__doc__}".replace("\n", " \n")


@pytest.mark.parametrize("value", [*get_args(StopReason), *get_args(RefineMode)])
def test_every_outcome_and_mode_is_documented(value: str) -> None:
    """A stop reason or a mode of refinement that a caller can meet is on some page."""
    assert f"`{value}`" in ALL_TEXT


def test_every_failure_kind_has_a_comment() -> None:
    """Each kind of failed call is explained where it is defined."""
    source = (ROOT / "agentkit" / "messages.py").read_text(encoding="utf-8")
    for kind in get_args(FailureKind):
        assert re.search(rf'"{kind}",  # \w', source), kind


def test_index_links_every_page() -> None:
    """A page that nobody can find from the index does not exist for a reader."""
    names = [path.name for path in DOCS.glob("*.md") if path.name != "quickstart.md"]
    assert unlinked_pages(TEXT[DOCS / "quickstart.md"], names) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_links_lead_somewhere(path: Path) -> None:
    """Every relative link of a page has a file behind it."""
    assert dead_links(path, TEXT[path]) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_named_targets_and_files_exist(path: Path) -> None:
    """``make`` targets, scripts and modules that a page names are there, or shown on the page."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"(?:^|`)make ([a-z-]+)", TEXT[path], re.MULTILINE):
        assert f"\n{target}:" in makefile, f"make {target}"
    shown = set(re.findall(r"^# (\S+\.py)$", TEXT[path], re.MULTILINE))
    for name in re.findall(
        r"(?:training/)?(?:agentkit|examples|tests|plugins)/[\w/.-]+\.py", TEXT[path]
    ):
        assert name in shown or (ROOT / name).exists(), name


def test_the_checks_can_fail(tmp_path: Path) -> None:
    """A dead link and a page that the index forgot are found."""
    assert dead_links(tmp_path / "page.md", "See [it](missing.md) and [web](https://x.y).")
    assert unlinked_pages("[a](a.md)", ["a.md", "b.md"]) == ["b.md"]
