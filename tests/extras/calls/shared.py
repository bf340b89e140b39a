"""What the scripts beside this file share: a tool, models that call one, and what is told at the end.

Each ``with_EXTRA.py`` makes an agent call a tool through what its extra brings, and needs nothing
else: neither pytest nor any other extra. It ends with a line that tells what was done, or with a
traceback; without its extra, the last line of that names the one to install.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from agentkit import Agent, Effects, RunResult, tool
from agentkit.errors import MissingExtraError
from agentkit.messages import ToolCall
from agentkit.models import ChatModel
from agentkit.testing import FunctionModel

sys.path.append(str(Path(__file__).parents[2]))  # for tests/support

from support.model_server import ProviderServer
from support.server_steps import Reply

AGENTKIT = str(Path(sys.executable).with_name("agentkit"))
"""The command, as it was installed beside this Python."""

TOOLS = str(Path(__file__).with_name("squares.py"))
"""The tool in a file, for the command."""


@tool(effects=Effects.pure())
def square(n: int) -> int:
    """The square of n."""
    return n * n


SQUARE_12 = ToolCall(call_id="c1", name="square", arguments={"n": 12})


def caller(call: ToolCall) -> FunctionModel:
    """A model that makes one call, and then answers with what came of it."""
    return FunctionModel(
        lambda request: request.messages[-1].text if len(request.messages) > 1 else [call]
    )


def provider() -> ProviderServer:
    """A server that speaks as providers do, and whose model asks for the square of 12."""
    return ProviderServer([Reply(tool_calls=[SQUARE_12]), "144"])


def ask(model: ChatModel | str) -> RunResult:
    """What an agent with the one tool answers."""
    return Agent(model, tools=[square]).run_sync("What is 12 squared?")


def ask_provider(model: str) -> RunResult:
    """What an agent answers whose model is at a provider, for which ours stands in."""
    with provider() as server:
        os.environ |= {
            "ANTHROPIC_API_KEY": "k",
            "ANTHROPIC_BASE_URL": server.root_url,
            "ANTHROPIC_API_BASE": server.root_url,
            "OPENAI_API_KEY": "k",
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_API_BASE": server.base_url,
            "no_proxy": "127.0.0.1",
        }
        return ask(model)


def client_of(package: str, name: str) -> Any:
    """The class of a client of a provider's SDK, which an extra of the same name brings.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        return getattr(import_module(package), name)
    except ImportError as error:
        raise MissingExtraError(
            name, package=package, install=f'pip install "agentkit-evolve[{package}]"'
        ) from error


def check(result: RunResult, value: object, what: str, *distributions: str) -> None:
    """See that one call was made and gave the value; tell through what."""
    assert [made.value for made in result.episode.results] == [value], result.episode
    tell(f"{what}: {result.output}", *distributions)


def tell(what: str, *distributions: str) -> None:
    """Say what was done, and by which versions of the distributions."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in distributions)
    print(f"{what} ({versions})")
