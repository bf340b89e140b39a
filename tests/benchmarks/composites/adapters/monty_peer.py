"""pydantic-monty: a Python of its own in a worker process; children are host functions.

The function is defined once in a session; what is timed is a feed of one line that calls it. Each
child is a round trip between the worker and this process, and the worker's CPU time counts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import workload
from pydantic_monty import Monty

VENV = "monty"
DISTRIBUTION = "pydantic-monty"


class Engine:
    """One session of a pool with one worker."""

    def __init__(self) -> None:
        stack = ExitStack()
        before = _children()
        pool = stack.enter_context(Monty(max_processes=1))
        self._session = stack.enter_context(pool.checkout(limits={"max_suspensions": 10**9}))
        self.processes = sorted(_children() - before)
        self._stack = stack

    def prepare(self, name: str, source: str, arguments: Mapping[str, Any]) -> Callable[[], Any]:
        """A feed that calls the function, the arguments as inputs."""
        self._session.feed_run(source, external_lookup=workload.CHILDREN)
        call = f"{name}({', '.join(f'{key}={key}' for key in arguments)})"
        inputs = dict(arguments)
        return lambda: self._session.feed_run(
            call, inputs=inputs, external_lookup=workload.CHILDREN
        )

    def read(self, source: str) -> None:
        """Text to defined function."""
        self._session.feed_run(source, external_lookup=workload.CHILDREN)

    def close(self) -> None:
        """End the session and its worker."""
        self._stack.close()


def _children() -> set[int]:
    """Processes that this one started."""
    task = Path(f"/proc/{os.getpid()}/task")
    return {
        int(pid) for thread in task.iterdir() for pid in (thread / "children").read_text().split()
    }
