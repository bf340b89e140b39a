"""The versions in docs/interop.md are those that tests can have met.

A version that is named must be one that ``pip`` would install, and of a package that is installed
here the major version must be named. So a table does not go out of date with each release of
another project, and does with each that may break what it says.
"""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

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
