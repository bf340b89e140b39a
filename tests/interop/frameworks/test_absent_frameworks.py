"""Without a framework agentkit works, and says what to install where one is asked for."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from agentkit import Library, interop
from agentkit.errors import MissingExtraError

DOORS = [
    ("library_capability", "pydantic_ai", 'pip install "pydantic-ai-slim[openai]"'),
    ("LibraryRunner", "agents", "pip install openai-agents"),
    ("library_middleware", "langchain", "pip install langchain langgraph"),
]


@pytest.mark.parametrize(("name", "package", "install"), DOORS)
def test_error_names_the_pip_line(name: str, package: str, install: str) -> None:
    """Each door of a framework that is not installed says which command brings it."""
    if importlib.util.find_spec(package):
        pytest.skip(f"{package} is installed here")
    with pytest.raises(MissingExtraError) as caught:
        getattr(interop, name)(Library())
    assert (caught.value.package, caught.value.install) == (package, install)
    assert install in str(caught.value)


def test_an_agent_needs_langchain_as_well() -> None:
    """The agent of LangChain is made by the framework, so its absence is told like the others."""
    if importlib.util.find_spec("langchain"):
        pytest.skip("langchain is installed here")
    with pytest.raises(MissingExtraError, match="pip install langchain langgraph"):
        interop.library_agent(Library(), "openai:gpt-4o-mini")


def test_importing_loads_no_framework() -> None:
    """A framework is imported by the function that needs it, also where it is installed."""
    code = (
        "import agentkit.interop.pydantic_ai, agentkit.interop.openai_agents\n"
        "import agentkit.interop.langchain, sys\n"
        "print({'pydantic_ai', 'agents', 'langchain', 'langchain_core', 'langgraph'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
