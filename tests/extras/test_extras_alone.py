"""An extra brings all that a tool call needs, seen without installing anything.

In a fresh process, every distribution that an extra does not bring is hidden; then the extra's
function in ``calls.py`` makes a tool call. ``make test-extras`` runs the same scripts in environments
that are really fresh.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

pytestmark = pytest.mark.long  # starts a pytest of its own for each

packaging = pytest.importorskip("packaging.requirements")

CALLS = Path(__file__).with_name("calls.py")
EXTRAS = sorted(re.findall(r"^def with_(\w+)", CALLS.read_text(encoding="utf-8"), re.MULTILINE))
OURS = {"bench", "dev", "docs"}
"""Extras for who works on agentkit."""

HIDE = """
import os
import sys

HIDDEN = frozenset(os.environ["HIDDEN"].split(","))


class Finder:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in HIDDEN:
            return self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)


sys.meta_path[:] = map(Finder, sys.meta_path)
"""
"""Run by Python when it starts, and by the Pythons that it starts."""


def brought(extra: str, *beside: str) -> set[str]:
    """Names of the distributions that an extra and others bring, by their own metadata."""
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [("agentkit-evolve", frozenset({extra})), *((name, frozenset()) for name in beside)]
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        for requirement in requirements(name):
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": one}) for one in ("", *extras)):
                waiting.append((plain(requirement.name), frozenset(requirement.extras)))
    return {name for name, _ in seen}


def requirements(name: str) -> list[packaging.Requirement]:
    """What an installed distribution requires; nothing for one that is for other platforms."""
    try:
        texts = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []
    return [packaging.Requirement(text) for text in texts]


def plain(name: str) -> str:
    """A distribution's name as an index compares it."""
    return name.lower().replace("_", "-").replace(".", "-")


def is_installed(extra: str) -> bool:
    """Whether what the extra itself names is here."""
    named = [
        requirement.name
        for requirement in requirements("agentkit-evolve")
        if requirement.marker is not None and requirement.marker.evaluate({"extra": extra})
    ]
    here = {plain(found.name) for found in metadata.distributions()}
    return {plain(name) for name in named} <= here


@pytest.fixture(scope="module")
def owners():
    """Which distributions each module that can be imported is of."""
    found = metadata.packages_distributions()
    return {module: {plain(name) for name in names} for module, names in found.items()}


@pytest.fixture
def run(owners, tmp_path):
    """Makes a call of ``calls.py`` where nothing can be imported but what some extras bring."""
    (tmp_path / "sitecustomize.py").write_text(HIDE)

    def run(call: str, kept: set[str]) -> subprocess.CompletedProcess[str]:
        hidden = sorted(module for module, names in owners.items() if not names & kept)
        path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
        return subprocess.run(
            [sys.executable, "-W", "ignore", CALLS, call],
            env={**os.environ, "PYTHONPATH": path, "HIDDEN": ",".join(hidden)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )

    return run


def test_every_extra_of_users_has_a_script(project_root):
    """No extra is forgotten, neither here nor by ``make test-extras``."""
    text = (project_root / "pyproject.toml").read_text(encoding="utf-8")
    assert set(EXTRAS) == set(tomllib.loads(text)["project"]["optional-dependencies"]) - OURS


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_tool_call_with_nothing_else_installed(run, extra):
    """What the extra does not bring cannot be imported, and the call is made all the same."""
    if not is_installed(extra):
        pytest.skip(f"the extra {extra} is not installed")
    made = run(f"with_{extra}", brought(extra))
    assert made.returncode == 0, made.stderr[-2000:]


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_error_without_an_extra_names_it(run, extra):
    """Who lacks an extra reads in the last line what to type."""
    made = run(f"with_{extra}", brought(""))
    assert made.returncode != 0
    assert made.stderr.strip().endswith(f'Run: pip install "agentkit-evolve[{extra}]"')


def test_a_tool_call_is_a_span_where_an_sdk_is(run):
    """The application's SDK gets the spans of who installed the API alone."""
    pytest.importorskip("opentelemetry.sdk")
    made = run("otel_beside_an_sdk", brought("otel", "opentelemetry-sdk"))
    assert made.returncode == 0, made.stderr[-2000:]


def test_litellm_brings_what_it_forgets():
    """It imports mcp for any call that carries tools, and does not require it."""
    assert {"litellm", "mcp"} <= brought("litellm") - brought("")
