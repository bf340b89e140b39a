"""The page about frameworks and the examples run, against a local server in the place of OpenAI."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.model_server import FaultyServer
from support.server_steps import Reply

from agentkit.messages import ToolCall

EXAMPLES = {
    "pydantic_ai": "pydantic_ai_agent.py",
    "agents": "openai_agents_agent.py",
    "langchain": "langgraph_agent.py",
}
PACKAGES = [package for package in EXAMPLES if importlib.util.find_spec(package)]
if not PACKAGES:
    reason = "needs a framework in an environment of its own: run make test-interop"
    pytest.skip(reason, allow_module_level=True)


@pytest.fixture(scope="module")
def pages(project_root: Path) -> Iterator[ModuleType]:
    """The runner of pages, from the tests of the documentation."""
    path = project_root / "tests" / "docs" / "test_pages.py"
    spec = importlib.util.spec_from_file_location("runner_of_pages", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclass looks its module up by name
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., ToolCall]) -> Any:
    """A server in the place of OpenAI, and a fresh working directory."""
    exchange = call("1", "in_dollars", amount=10, currency="EUR")
    with FaultyServer([Reply(tool_calls=[exchange]), "They are 12.5 dollars."]) as server:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
        yield server


# A script that ends does not close the framework's client, and neither does the page.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("package", PACKAGES)
def test_page_runs(
    package: str, pages: ModuleType, project_root: Path, tmp_path: Path, served: FaultyServer
) -> None:
    """The blocks of the page that are about this framework show what they print."""
    page = project_root / "docs" / "interop.md"
    pages.run_page(page, tmp_path, weights=False, interop=package)
    assert len(served.requests) == 2


@pytest.mark.parametrize("package", PACKAGES)
def test_example_runs(
    package: str, project_root: Path, tmp_path: Path, served: FaultyServer
) -> None:
    """The example asks the model, runs our tool and shows the episode."""
    script = project_root / "examples" / "frameworks" / EXAMPLES[package]
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={**os.environ},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "They are 12.5 dollars.",
        "What are 10 euros in dollars? ['in_dollars'] finished",
    ]
    assert len(served.requests) == 2
