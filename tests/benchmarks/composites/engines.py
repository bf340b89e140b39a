"""Measures one engine inside its own environment; called by ``overhead.py``.

    python engines.py ENGINE REPEATS

Standard library only, but for the engine, so that it runs wherever an engine does. Times are CPU times
of this process and of the workers that the engine started.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

sys.path.append(str(Path(__file__).resolve().parents[1]))

from harness import result

STRETCH_SECONDS = 0.004
"""How long one stretch of repeated calls takes at least; a clock cannot time a single one."""

Call = Callable[[], Any]
Arguments = Mapping[str, Any]


# --- what every engine does: the same two texts over the same functions -----------------------


def convert(amount: float, rate: float) -> float:
    """An amount in another currency."""
    return amount * rate


def discount(value: float, percent: float) -> float:
    """A value less some percent."""
    return value - value * percent / 100


def tax(value: float) -> float:
    """The tax on a value."""
    return value * 0.19


def fee(days: int) -> float:
    """The fee for some days."""
    return 2.5 * days


def add(left: float, right: float) -> float:
    """The sum of two numbers."""
    return left + right


def quote(amount: float, rate: float, days: int) -> float:
    """``QUOTE`` as plain Python: what the children cost when they are called directly."""
    converted = convert(amount=amount, rate=rate)
    reduced = discount(value=converted, percent=5)
    taxed = tax(value=reduced)
    service = fee(days=days)
    return add(left=taxed, right=service)


def prices(rows: list[dict[str, Any]], rate: float) -> list[float]:
    """``PRICES`` as plain Python."""
    return [convert(amount=row["amount"], rate=rate) for row in rows]


CHILDREN: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (convert, discount, tax, fee, add)
}
QUOTE = '''
def quote(amount, rate, days):
    """The price of a stay in another currency, with tax and fee."""
    converted = convert(amount=amount, rate=rate)
    reduced = discount(value=converted, percent=5)
    taxed = tax(value=reduced)
    service = fee(days=days)
    return add(left=taxed, right=service)
'''
PRICES = '''
def prices(rows, rate):
    """The price of every row in another currency."""
    return [convert(amount=row["amount"], rate=rate) for row in rows]
'''
ROWS = [{"name": f"row {i}", "amount": i * 1.5} for i in range(100)]
WORK: tuple[tuple[Callable[..., Any], str, Arguments], ...] = (
    (quote, QUOTE, {"amount": 120.0, "rate": 1.1, "days": 3}),
    (prices, PRICES, {"rows": ROWS, "rate": 1.1}),
)


# --- engines -----------------------------------------------------------------------------------


class Engine:
    """The children called directly by a Python function: the floor that the others are compared with.

    Attributes:
        venv: The environment that the engine needs; None for this one.
        distribution: Whose version is told.
        processes: Workers, whose CPU time counts.
    """

    venv: ClassVar[str | None] = None
    distribution: ClassVar[str] = ""
    processes: Sequence[int] = ()

    def prepare(self, name: str, source: str, arguments: Arguments) -> Call:
        """A call of the function, read and bound beforehand."""
        function = globals()[name]
        return lambda: function(**arguments)

    def reading(self, source: str) -> Call | None:
        """From the text to something that runs; None where nothing is read."""
        return None


class Ours(Engine):
    """A ``Composite`` over tools made of the children."""

    distribution = "agentkit-evolve"

    def __init__(self) -> None:
        from agentkit.tools.decorator import tool
        from agentkit.tools.definition import Effects

        pure = Effects(reads=False, writes=False)
        self._tools: Any = {name: tool(one, effects=pure) for name, one in CHILDREN.items()}

    def _composite(self, name: str, source: str) -> Any:
        from agentkit.composites.composite import Composite
        from agentkit.composites.parser import parse

        return Composite(parse(source, self._tools).program, self._tools, name=name)

    def prepare(self, name: str, source: str, arguments: Arguments) -> Call:
        composite = self._composite(name, source)
        return lambda: composite.run(arguments)

    def reading(self, source: str) -> Call | None:
        from agentkit.composites.parser import parse

        return lambda: parse(source, self._tools)


class OursWaiting(Ours):
    """The same with children that read the world: they are awaited, independent ones side by side."""

    def __init__(self) -> None:
        from agentkit.tools.decorator import tool
        from agentkit.tools.tool import Tool

        def awaited(function: Callable[..., Any]) -> Tool:
            async def call(**arguments: Any) -> Any:
                return function(**arguments)

            definition = tool(function, effects=("reads",)).definition
            return Tool(definition=definition, function=call, is_async=True)

        self._loop = asyncio.new_event_loop()
        self._tools = {name: awaited(function) for name, function in CHILDREN.items()}

    def prepare(self, name: str, source: str, arguments: Arguments) -> Call:
        composite = self._composite(name, source)
        return lambda: self._loop.run_until_complete(composite.run_async(arguments))

    def reading(self, source: str) -> Call | None:
        return None


class Smolagents(Engine):
    """``LocalPythonExecutor``: the function is defined once, and the callable made of it is called."""

    venv = distribution = "smolagents"

    def __init__(self) -> None:
        from smolagents.local_python_executor import LocalPythonExecutor

        self._executor = LocalPythonExecutor([], timeout_seconds=None)
        self._executor.send_tools(dict(CHILDREN))

    def prepare(self, name: str, source: str, arguments: Arguments) -> Call:
        self._executor(source)
        function = self._executor.custom_tools[name]
        return lambda: function(**arguments)

    def reading(self, source: str) -> Call | None:
        return lambda: self._executor(source)


class Monty(Engine):
    """pydantic-monty: a session in a worker process, fed one line a call; children are round trips."""

    venv = "monty"
    distribution = "pydantic-monty"

    def __init__(self) -> None:
        from pydantic_monty import Monty as Pool

        stack, before = ExitStack(), started_processes()
        pool = stack.enter_context(Pool(max_processes=1))
        self._session = stack.enter_context(pool.checkout(limits={"max_suspensions": 10**9}))
        self.processes = sorted(started_processes() - before)

    def prepare(self, name: str, source: str, arguments: Arguments) -> Call:
        self._session.feed_run(source, external_lookup=CHILDREN)
        call, inputs = f"{name}({', '.join(f'{key}={key}' for key in arguments)})", dict(arguments)
        return lambda: self._session.feed_run(call, inputs=inputs, external_lookup=CHILDREN)

    def reading(self, source: str) -> Call | None:
        return lambda: self._session.feed_run(source, external_lookup=CHILDREN)


ENGINES: dict[str, type[Engine]] = {
    "plain_python": Engine,
    "agentkit_composite": Ours,
    "agentkit_waiting": OursWaiting,
    "smolagents_peer": Smolagents,
    "monty_peer": Monty,
}


# --- measuring ---------------------------------------------------------------------------------


def started_processes() -> set[int]:
    """Processes that this one started."""
    threads = Path(f"/proc/{os.getpid()}/task").iterdir()
    return {int(pid) for one in threads for pid in (one / "children").read_text().split()}


def cpu_seconds(processes: Sequence[int]) -> float:
    """CPU time of this process and of others, by the scheduler's own books."""
    others = sum(
        int((thread / "schedstat").read_text().split()[0])
        for process in processes
        for thread in Path(f"/proc/{process}/task").iterdir()
    )
    return time.process_time() + others / 1e9


def microseconds(call: Call, processes: Sequence[int], repeats: int) -> float:
    """The quickest of some stretches, for one call."""

    def stretch(number: int) -> None:
        for _ in range(number):
            call()

    number, began = 1, time.perf_counter()
    stretch(number)
    while time.perf_counter() - began < STRETCH_SECONDS:
        number, began = number * 2, time.perf_counter()
        stretch(number)
    spent = []
    for _ in range(repeats):
        before = cpu_seconds(processes)
        stretch(number)
        spent.append((cpu_seconds(processes) - before) / number)
    return min(spent) * 1e6


def measured(engine: Engine, repeats: int) -> dict[str, Any]:
    """Both texts, and the reading of the first one."""
    found: dict[str, Any] = {
        "version": metadata.version(engine.distribution) if engine.distribution else ""
    }
    gc.freeze()
    for function, source, arguments in WORK:
        name = function.__name__
        call = engine.prepare(name, source, arguments)
        if call() != function(**arguments):
            raise SystemExit(f"another result for {name}: {call()}")
        found[name] = microseconds(call, engine.processes, repeats)
    reading = engine.reading(QUOTE)
    found["read"] = microseconds(reading, engine.processes, repeats) if reading else 0
    return found


if __name__ == "__main__":
    result(measured(ENGINES[sys.argv[1]](), int(sys.argv[2])))
    sys.stdout.flush()
    os._exit(0)  # an engine may leave workers behind
