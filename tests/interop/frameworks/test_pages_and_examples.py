"""With a framework the page and the examples run; without one an error says what to install."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest
from support.model_server import FaultyServer
from support.server_steps import Reply

from agentkit import Library, interop
from agentkit.errors import MissingExtraError

EXAMPLES = {
    "pydantic_ai": "pydantic_ai_agent.py",
    "agents": "openai_agents_agent.py",
    "langchain": "langgraph_agent.py",
}
PACKAGES = [package for package in EXAMPLES if importlib.util.find_spec(package)]


@pytest.fixture(scope="module")
def pages(project_root):
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
def served(tmp_path, monkeypatch, call):
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
def test_page_runs(package, pages, project_root, tmp_path, served):
    """The blocks of the page that are about this framework show what they print."""
    page = project_root / "docs" / "interop.md"
    pages.run_page(page, tmp_path, weights=False, interop=package)
    assert len(served.requests) == 2


@pytest.mark.parametrize("package", PACKAGES)
def test_example_runs(package, project_root, tmp_path, served):
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


DOORS = [
    ("library_capability", "pydantic_ai", 'pip install "pydantic-ai-slim[openai]"'),
    ("LibraryRunner", "agents", "pip install openai-agents"),
    ("library_middleware", "langchain", "pip install langchain langgraph"),
]


@pytest.mark.parametrize(("name", "package", "install"), DOORS)
def test_error_names_the_pip_line(name, package, install):
    """Each door of a framework that is not installed says which command brings it."""
    if importlib.util.find_spec(package):
        pytest.skip(f"{package} is installed here")
    with pytest.raises(MissingExtraError) as caught:
        getattr(interop, name)(Library())
    assert (caught.value.package, caught.value.install) == (package, install)
    assert install in str(caught.value)


def test_an_agent_needs_langchain_as_well():
    """The agent of LangChain is made by the framework, so its absence is told like the others."""
    if importlib.util.find_spec("langchain"):
        pytest.skip("langchain is installed here")
    with pytest.raises(MissingExtraError, match="pip install langchain langgraph"):
        interop.library_agent(Library(), "openai:gpt-4o-mini")


def test_importing_loads_no_framework():
    """A framework is imported by the function that needs it, also where it is installed."""
    code = (
        "import agentkit.interop.pydantic_ai, agentkit.interop.openai_agents\n"
        "import agentkit.interop.langchain, sys\n"
        "print({'pydantic_ai', 'agents', 'langchain', 'langchain_core', 'langgraph'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
