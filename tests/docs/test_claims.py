"""What pages say of the code is true: versions, the language, the files of walks, tests of security.

A version that docs/interop.md names must be one that ``pip`` would install, and of a package that is
installed here the major version must be named. So a table does not go out of date with each release
of another project, and does with each that may break what it says.
"""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import get_args

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from agentkit.composites import language
from agentkit.composites.problems import ADVICE, CompositeLimits, RunCode

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


def test_the_major_version_of_what_is_installed_is_named() -> None:
    """Whoever runs these tests with a new major version is told to say that it works."""
    assert outdated(NAMED_VERSIONS) == []


def test_every_named_version_can_be_installed() -> None:
    """A version outside what pyproject.toml or the Makefile asks for is promised to nobody."""
    assert refused(NAMED_VERSIONS, requirements()) == []


@pytest.mark.parametrize("extra", ["litellm", "fast", "otel", "mcp", "openapi", "serve"])
def test_every_extra_that_reaches_others_is_in_the_table(extra) -> None:
    """A provider, a protocol or a transport stands in the table with a version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {Requirement(one).name for one in project["optional-dependencies"][extra]}
    assert names <= set(NAMED_VERSIONS)


def test_the_checks_can_fail() -> None:
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
def test_functions_and_methods_are_those_of_the_language(table: dict[str, language.Arity]) -> None:
    """Each stands there with how it may be called."""
    page = PAGE.replace("\n", " ")
    for name, words in table.items():
        assert f"`{name}` ({arity(words)})" in page, name


def test_limits_stand_there_with_their_defaults() -> None:
    """Each limit has a row with its default, in the order of the class."""
    expected = [[f"`{field.name}`", f"{field.default:,}"] for field in fields(CompositeLimits)]
    assert [row[:2] for row in ROWS if row[:2] in expected] == expected


@pytest.mark.parametrize("code", [*ADVICE, *get_args(RunCode)])
def test_each_code_is_explained(code: str) -> None:
    """Every reason for which a text is refused or a run ends stands in a table."""
    assert any(f"`{code}`" in row[0] for row in ROWS)


def test_the_page_names_no_code_that_there_is_not() -> None:
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


def test_every_line_names_a_test_that_exists(project_root: Path) -> None:
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
