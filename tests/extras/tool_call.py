"""One tool call through one extra, in whatever environment this runs: ``tool_call.py EXTRA``.

Needs the extra and nothing of the development tools. Prints what was answered and by which
versions; any failure is a traceback and a status of 1.
"""

from __future__ import annotations

import os
import sys
from importlib import metadata

from agentkit import Agent, resolve_model, tool
from agentkit.messages import ToolCall
from agentkit.testing import ProviderServer, Reply

MODELS = {
    "anthropic": ["anthropic:claude"],
    "fast": ["openai-compatible:gpt"],
    "litellm": ["litellm:openai/gpt-4o-mini", "litellm:anthropic/claude-sonnet-5-5"],
    "openai": ["openai:gpt", "openai-responses:gpt"],
}
PACKAGES = {"fast": "aiohttp"}
CALL = ToolCall(call_id="c1", name="square", arguments={"n": 12})


@tool
def square(n: int) -> int:
    """The square of n."""
    return n * n


def ask(name: str) -> str:
    """The answer of one run with one call, at a server of our own."""
    with ProviderServer([Reply(tool_calls=[CALL]), "144"]) as server:
        os.environ |= {
            "ANTHROPIC_API_KEY": "k",
            "ANTHROPIC_BASE_URL": server.root_url,
            "ANTHROPIC_API_BASE": server.root_url,
            "OPENAI_API_KEY": "k",
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_API_BASE": server.base_url,
            "no_proxy": "127.0.0.1",
        }
        result = Agent(resolve_model(name), tools=[square]).run_sync("12 squared?")
    assert [made.value for made in result.episode.results] == [144], result.episode
    return f"{result.output}"


def main(extra: str) -> None:
    """Ask through each model of an extra."""
    package = PACKAGES.get(extra, extra)
    version = metadata.version(package)
    for name in MODELS[extra]:
        print(f"{name}: {ask(name)} ({package} {version})")


if __name__ == "__main__":
    main(sys.argv[1])
