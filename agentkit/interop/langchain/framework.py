"""What every part of the adapter asks of LangChain itself."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

from agentkit._waiting import wait_for
from agentkit.errors import MissingExtraError

T = TypeVar("T")


def require() -> None:
    """Say what to install where LangChain's agents are not there."""
    try:
        import langchain.agents.middleware  # noqa: F401 - asked whether it is there
        import langgraph.types  # noqa: F401 - as above
    except ImportError as error:
        raise missing("langchain", "langchain langgraph") from error


def missing(package: str, distributions: str) -> MissingExtraError:
    """The error for a package that is not there."""
    install = f"pip install {distributions}"
    return MissingExtraError("the adapter for LangChain", package=package, install=install)


def waited(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns, for the framework's synchronous half."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return wait_for(coroutine)
    with ThreadPoolExecutor(1) as pool:  # a synchronous graph inside somebody's event loop
        return pool.submit(copy_context().run, wait_for, coroutine).result()


def current_config() -> dict[str, Any]:
    """The configuration of the node of the graph that runs now."""
    from langgraph.config import get_config

    return dict(get_config())
