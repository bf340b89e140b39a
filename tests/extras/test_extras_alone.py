"""An extra brings all that a tool call needs, seen without installing anything.

In a fresh process, every distribution that the extra does not bring is hidden; then one run with
one tool call is made. This is done with the two that are quick to import; ``make test-extras`` makes
the call with every extra, in environments that are really fresh.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest

packaging = pytest.importorskip("packaging.requirements")

CALL = Path(__file__).with_name("tool_call.py")
HIDE = """
import runpy, sys
from importlib.abc import MetaPathFinder

class Hidden(MetaPathFinder):
    names = frozenset(sys.argv[2].split(","))

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"{name} is not in this extra", name=name)

sys.meta_path.insert(0, Hidden())
script, extra = sys.argv[1], sys.argv[3]
sys.argv[:] = [script, extra]
runpy.run_path(script, run_name="__main__")
"""


def brought(extra: str) -> set[str]:
    """Names of the distributions that the extra brings, by their own metadata."""
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [("agentkit-evolve", frozenset({extra}))]
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


@pytest.mark.parametrize("extra", ["fast", "openai"])
def test_one_tool_call_with_nothing_else_installed(extra: str) -> None:
    """What the extra does not bring can not be imported, and the call is made all the same."""
    package = {"fast": "aiohttp"}.get(extra, extra)
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    kept = brought(extra)
    hidden = {
        module
        for module, owners in metadata.packages_distributions().items()
        if not {plain(owner) for owner in owners} & kept
    }
    command = [sys.executable, "-W", "ignore", "-c", HIDE, CALL, ",".join(sorted(hidden)), extra]
    made = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert made.returncode == 0, made.stderr[-2000:]
    assert ": 144 (" in made.stdout


@pytest.mark.parametrize(
    ("extra", "packages"),
    [
        ("anthropic", {"anthropic"}),
        ("fast", {"aiohttp"}),
        ("litellm", {"litellm", "mcp"}),
        ("openai", {"openai"}),
    ],
)
def test_extra_names_what_a_call_imports(extra: str, packages: set[str]) -> None:
    """What our adapter imports is in the extra itself; litellm imports mcp for calls with tools."""
    assert packages <= brought(extra) - brought("")
