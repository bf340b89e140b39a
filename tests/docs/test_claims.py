"""What the pages claim is so: tables, names, references and examples."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import os
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import get_args

import click
import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import agentkit.errors
from agentkit.cli.main import main
from agentkit.composites import language
from agentkit.composites.problems import ADVICE, CompositeLimits, RunCode
from agentkit.episodes import RefineMode, StopReason
from agentkit.messages import FailureKind

ROOT = Path(__file__).resolve().parents[2]
NUMBER = r"\d+(?:\.\w+)+"
NAMED = re.compile(rf"([A-Za-z][\w-]*) ({NUMBER}(?:(?:, | and ){NUMBER})*)")


def versions_in(page: str) -> dict[str, set[Version]]:
    """The versions of each distribution in the last column of a page's tables."""
    found: dict[str, set[Version]] = {}
    for row in re.findall(r"^\|.*\|$", page, re.MULTILINE):
        for name, numbers in NAMED.findall(row.rstrip("|").rpartition("|")[2]):
            known = found.setdefault(name.lower(), set())
            known.update(map(Version, re.findall(NUMBER, numbers)))
    return found


def requirements() -> list[Requirement]:
    """What the package and its extras ask for, and what the environments of frameworks do."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [one for name, all_ in project["optional-dependencies"].items() for one in all_]
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8")
    frameworks = [
        quoted
        for line in re.findall(r"^needs-.*:=(.*)$", recipe, re.MULTILINE)
        for quoted in re.findall(r'"([^"]+)"', line)
    ]
    return [Requirement(one) for one in (*project["dependencies"], *extras, *frameworks)]


def outdated(named: dict[str, set[Version]]) -> list[str]:
    """Installed packages whose major version is not among the named ones."""
    faults = []
    for name, versions in named.items():
        try:
            installed = Version(version(name))
        except PackageNotFoundError:  # another environment's, such as that of a framework
            continue
        if installed.major not in {one.major for one in versions}:
            faults.append(f"{name} {installed} is installed, {sorted(map(str, versions))} named")
    return faults


def refused(named: dict[str, set[Version]], wanted: list[Requirement]) -> list[str]:
    """Named versions that no requirement on their package allows."""
    asked: dict[str, list[Requirement]] = {}
    for one in wanted:
        asked.setdefault(one.name.lower(), []).append(one)
    return [
        f"{name} {number}"
        for name, numbers in named.items()
        for number in numbers
        if name in asked
        and not any(one.specifier.contains(number, prereleases=True) for one in asked[name])
    ]


NAMED_VERSIONS = versions_in((ROOT / "docs/interop.md").read_text(encoding="utf-8"))


def test_the_major_version_of_what_is_installed_is_named():
    """Whoever runs these tests with a new major version is told to say that it works."""
    assert outdated(NAMED_VERSIONS) == []


def test_every_named_version_can_be_installed():
    """A version outside what pyproject.toml or the Makefile asks for is promised to nobody."""
    assert refused(NAMED_VERSIONS, requirements()) == []


@pytest.mark.parametrize("extra", ["litellm", "fast", "otel", "mcp", "openapi", "serve"])
def test_every_extra_that_reaches_others_is_in_the_table(extra):
    """A provider, a protocol or a transport stands in the table with a version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {Requirement(one).name for one in project["optional-dependencies"][extra]}
    assert names <= set(NAMED_VERSIONS)


def test_the_checks_can_fail():
    """An unknown major version, a version that pip refuses and one row of two packages are seen."""
    row = "| x | httpx 9.1.0, PyYAML 6.0.3 and 5.1; servers of starlette 1.10.0 |\n"
    named = versions_in(f"| what 1.2 | tested |\n{row}")
    assert {name: sorted(map(str, found)) for name, found in named.items()} == {
        "httpx": ["9.1.0"],
        "pyyaml": ["5.1", "6.0.3"],
        "starlette": ["1.10.0"],
    }
    assert [fault.partition(" ")[0] for fault in outdated(named)] == ["httpx"]
    assert sorted(refused(named, requirements())) == ["httpx 9.1.0", "pyyaml 5.1"]


PAGE = (Path(__file__).resolve().parents[2] / "docs" / "composites.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| `")
]


def arity(words: language.Arity) -> str:
    """How the page writes how a function may be called."""
    if words.most is None:
        count = f"{words.least} or more"
    elif words.most == words.least:
        count = f"{words.least}"
    else:
        count = f"{words.least} to {words.most}"
    return ", ".join([count, *(f"`{keyword}=`" for keyword in words.keywords)])


@pytest.mark.parametrize("table", [language.BUILTINS, language.METHODS])
def test_functions_and_methods_are_those_of_the_language(table):
    """Each stands there with how it may be called."""
    page = PAGE.replace("\n", " ")
    for name, words in table.items():
        assert f"`{name}` ({arity(words)})" in page, name


def test_limits_stand_there_with_their_defaults():
    """Each limit has a row with its default, in the order of the class."""
    expected = [[f"`{field.name}`", f"{field.default:,}"] for field in fields(CompositeLimits)]
    assert [row[:2] for row in ROWS if row[:2] in expected] == expected


@pytest.mark.parametrize("code", [*ADVICE, *get_args(RunCode)])
def test_each_code_is_explained(code):
    """Every reason for which a text is refused or a run ends stands in a table."""
    assert any(f"`{code}`" in row[0] for row in ROWS)


def test_the_page_names_no_code_that_there_is_not():
    """A code that was renamed does not stay behind."""
    section = PAGE.split("## Errors")[1].split("## Stored composites")[0]
    named = {
        code
        for line in section.splitlines()
        if line.startswith("| `")
        for code in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    assert named == {*ADVICE, *get_args(RunCode)}


@pytest.fixture
def named(project_root):
    """The files that the page names, by their dotted names below the package."""
    page = (project_root / "docs" / "architecture.md").read_text(encoding="utf-8")
    walks = page.partition("## A run, top to bottom")[2].partition("## Imports run one way")[0]
    return re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.py)`", walks)


def test_each_file_of_the_walks_exists(named, project_root):
    """A reader who follows the page finds every file of it."""
    assert len(named) > 20
    roots = (project_root, project_root / "agentkit")
    missing = [name for name in named if not any((root / name).is_file() for root in roots)]
    assert missing == []


def test_the_folder_map_is_the_tree(project_root):
    """Every folder of the package that holds code stands in the map, and none that is gone."""
    page = (project_root / "docs" / "architecture.md").read_text(encoding="utf-8")
    block = page.partition("```text\nagentkit/\n")[2].partition("plugins/ ")[0]
    shown = set(re.findall(r"^  ([a-z_]+)/", block, re.MULTILINE))
    there = {path.parent.name for path in (project_root / "agentkit").glob("*/__init__.py")}
    assert shown == there


def test_each_change_names_at_most_three_files(project_root):
    """Whoever adds a stage, a check or a proposer finds the places, and they are few."""
    page = (project_root / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.partition("## Three changes")[2].partition("\n## ")[0]
    changes = re.split(r"^\*\*Another ", section, flags=re.MULTILINE)[1:]
    assert len(changes) == 3
    for change in changes:
        places = re.findall(r"`((?:tests|cli|retrieval|evolution)/[a-z_/]*(?:\.py)?)`", change)
        assert 2 <= len(set(places)) <= 4  # one of them may be a page to read first
        for place in places:
            assert (project_root / "agentkit" / place).exists() or (project_root / place).exists()


_TEST = re.compile(r"`((?:plugins/[\w-]+/)?tests/[\w/]+\.py)(?:::(\w+))?`")


def test_every_line_names_a_test_that_exists(project_root):
    """Each row of a table ends with a test, and the test is there under that name."""
    page = (project_root / "docs" / "security.md").read_text(encoding="utf-8")
    rows = [
        line for line in page.splitlines() if line.startswith("| ") and "| held by |" not in line
    ]
    assert len(rows) >= 30
    for row in rows:
        path, name = _TEST.findall(row.rsplit("|", 2)[1])[0]
        module = ast.parse((project_root / path).read_text(encoding="utf-8"))
        assert not name or name in {node.name for node in ast.walk(module) if hasattr(node, "name")}


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
def test_generated_pages_are_up_to_date(path):
    """What is generated from the code says what the code says; ``make docs`` writes it anew."""
    command = [sys.executable, "-m", "cogapp", "-I", "docs", "--check", path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"run: make docs\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_is_explained(path):
    """It has a section on the page, and says with each of its options in its help what it does."""
    assert f"\n## {path}\n" in TEXT[DOCS / "cli.md"]
    command = COMMANDS[path]
    assert command.help, f"{path} has no help"
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert option.help, f"{path} {option.opts[0]} has no help"


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_is_documented(name):
    """The page of errors names the error, and the tree at the top of the module does."""
    assert f"`{name}`" in TEXT[DOCS / "reference.md"]
    assert f"* {name} " in f"{agentkit.errors.__doc__}".replace("\n", " \n")


@pytest.mark.parametrize("value", [*get_args(StopReason), *get_args(RefineMode)])
def test_every_outcome_and_mode_is_documented(value):
    """A stop reason or a mode of refinement that a caller can meet is on some page."""
    assert f"`{value}`" in ALL_TEXT


def test_every_failure_kind_has_a_comment():
    """Each kind of failed call is explained where it is defined."""
    source = (ROOT / "agentkit" / "messages.py").read_text(encoding="utf-8")
    for kind in get_args(FailureKind):
        assert re.search(rf'"{kind}",  # \w', source), kind


def test_index_links_every_page():
    """A page that nobody can find from the index does not exist for a reader."""
    names = [path.name for path in DOCS.glob("*.md") if path.name != "quickstart.md"]
    assert unlinked_pages(TEXT[DOCS / "quickstart.md"], names) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_links_lead_somewhere(path):
    """Every relative link of a page has a file behind it."""
    assert dead_links(path, TEXT[path]) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_named_targets_and_files_exist(path):
    """``make`` targets, scripts and modules that a page names are there, or shown on the page."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"(?:^|`)make ([a-z-]+)", TEXT[path], re.MULTILINE):
        assert f"\n{target}:" in makefile, f"make {target}"
    shown = set(re.findall(r"^# (\S+\.py)$", TEXT[path], re.MULTILINE))
    for name in re.findall(
        r"(?:training/)?(?:agentkit|examples|tests|plugins)/[\w/.-]+\.py", TEXT[path]
    ):
        assert name in shown or (ROOT / name).exists(), name


def test_the_checks_of_the_reference_can_fail(tmp_path):
    """A dead link and a page that the index forgot are found."""
    assert dead_links(tmp_path / "page.md", "See [it](missing.md) and [web](https://x.y).")
    assert unlinked_pages("[a](a.md)", ["a.md", "b.md"]) == ["b.md"]


EXAMPLES = ROOT / "examples"
SCRIPTS = [  # the modules beside a script in a folder of its own are imported by it
    path
    for path in sorted(EXAMPLES.rglob("*.py"))
    if path.parent == EXAMPLES or "__main__" in path.read_text()
]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_example_runs(path, tmp_path, monkeypatch, capsys):
    """A script under examples/ succeeds without key, network or input, and prints something."""
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AGENTKIT_STORE", f"sqlite:///{tmp_path / 'agentkit.db'}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(path.parent))
    monkeypatch.setattr(sys, "argv", [str(path)])
    before = set(sys.modules)
    try:
        runpy.run_path(str(path), run_name="__main__")
    finally:
        for name in set(sys.modules) - before:  # those that lie beside the script
            if str(getattr(sys.modules[name], "__file__", None)).startswith(str(EXAMPLES)):
                del sys.modules[name]
    assert capsys.readouterr().out.strip()


def test_there_are_examples():
    """One numbered script for each stage, and the embedded chatbot."""
    names = {path.name for path in SCRIPTS}
    assert {"01_define_tools.py", "04_run_an_agent.py", "assistant.py"} <= names


ROOT_docstrings = Path(__file__).resolve().parents[2]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def modules_with_examples(folder: Path) -> list[str]:
    """Dotted names of the modules below a package folder that show an example."""
    return sorted(
        ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in folder.rglob("*.py")
        if ">>> " in path.read_text(encoding="utf-8")
    )


NAMES = [
    name
    for folder in [
        ROOT_docstrings / "agentkit",
        *sorted(ROOT_docstrings.glob("plugins/*/agentkit_*")),
    ]
    for name in modules_with_examples(folder)
]


@pytest.mark.parametrize("name", NAMES)
def test_examples_hold(name, tmp_path, monkeypatch, capsys):
    """What a docstring shows is what happens."""
    if not name.startswith("agentkit."):
        pytest.importorskip(name.split(".", maxsplit=1)[0], reason="the plugin is not installed")
    monkeypatch.chdir(tmp_path)
    outcome = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)
    assert outcome.failed == 0, capsys.readouterr().out
    assert outcome.attempted > 0


def test_the_check_can_fail(capsys):
    """A docstring whose example gives another result is reported."""
    module = ModuleType("sample", ">>> 1 + 1\n3\n")
    assert doctest.testmod(module, optionflags=OPTIONS).failed == 1
    assert "Expected:\n    3" in capsys.readouterr().out
