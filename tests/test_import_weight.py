"""Importing agentkit loads the standard library and our own modules, nothing heavy.

This reads which modules are loaded, not how long that took: time belongs to the benchmarks.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    "aiohttp", "anthropic", "click", "docstring_parser", "httpx", "jsonschema", "litellm", "mcp",
    "networkx", "numpy", "openai", "pydantic", "pydantic_core", "rfc8785", "rich", "sqlite_utils",
    "torch", "xllamacpp",
}  # fmt: skip
READERS = (
    "agentkit.server.app",
    "agentkit.server.chat",
    "agentkit.server.feedback",
    "agentkit.server.responses",
    "agentkit.server.running",
    "agentkit.server.work",
)
"""Modules that read foreign JSON with pydantic, or stand on these; only servers load them. The last
one is a transport of httpx, which the first call of an API loads."""

HEAVY_STANDARD = {"email", "multiprocessing", "sqlite3", "unittest", "xml"}
"""Parts of the standard library that cost several milliseconds and that few runs need."""

ENTRY_POINTS = [
    "import agentkit",
    "from agentkit import Agent, Library, Tool, tool",
    "from agentkit.models.openai_compatible import OpenAICompatibleModel",
    "import agentkit.library, agentkit.retrieval, agentkit.metrics, agentkit.diagnosis",
]


def loaded_by(code: str) -> set[str]:
    """Top-level packages that a fresh interpreter has loaded after running ``code``."""
    checkout = str(
        Path(__file__).parents[1]
    )  # in isolated mode only what is installed would be found
    report = f"import sys\nsys.path.insert(0, {checkout!r})\n{code}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-sP", "-c", report], capture_output=True, text=True, check=True
    )
    return {name.split(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize("code", ENTRY_POINTS)
def test_import_loads_nothing_heavy(code):
    """A heavy package is loaded by the function that uses it, not by an import of ours."""
    assert loaded_by(code) & (HEAVY | HEAVY_STANDARD) == set()


def test_every_module_imports_without_heavy_packages(runtime_modules):
    """The rule holds for each module of the runtime, not just for the public names."""
    heavy = ("agentkit.__main__", "agentkit.cli", "agentkit.testing", *READERS)
    light = sorted(name for name in runtime_modules if not name.startswith(heavy))
    assert loaded_by("\n".join(f"import {name}" for name in light)) & HEAVY == set()


def test_the_check_can_fail():
    """A heavy import is seen when there is one."""
    assert "pydantic" in loaded_by("import pydantic")


def test_few_of_our_own_modules_are_loaded():
    """What every run needs, and no more; the number may fall and not rise."""
    code = "from agentkit import Agent, Library, Tool, tool, open_store"
    checkout = str(Path(__file__).parents[1])
    report = f"import sys\nsys.path.insert(0, {checkout!r})\n{code}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-c", report], capture_output=True, text=True, check=True
    )
    own = [name for name in done.stdout.split() if name.partition(".")[0] == "agentkit"]
    assert len(own) <= 44, sorted(own)
