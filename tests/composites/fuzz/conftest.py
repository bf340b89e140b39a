"""Random programs in batches, the same text as a real Python module, and a count of what came."""

from __future__ import annotations

import importlib
import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.random_children import ChildrenInUse, Outcome, code_of
from support.random_programs import RandomProgram, random_program

from agentkit.composites.language import Program
from agentkit.composites.parser import parse
from agentkit.errors import CompositeRunError

BATCH = 250
PROGRAMS = int(os.environ.get("AGENTKIT_PROGRAMS", "250"))
"""`make test-all` asks for 20,000."""

MISTAKES = (0.002, 0.006, 0.006, 0.03)
"""Some programs hardly ever fail, some soon do."""
PREAMBLE = """
from __future__ import annotations
from math import isclose, isfinite

def is_close(a, b, tolerance=1e-9):
    return isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)

"""
COUNTS = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """``pytest tests/composites/fuzz --programs 20000 --first-seed 100000``."""
    group = parser.getgroup("composites")
    group.addoption("--programs", type=int, default=PROGRAMS, help="random programs to compare")
    group.addoption("--first-seed", type=int, default=0, help="seed of the first one")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each batch of seeds."""
    if "batch" in metafunc.fixturenames:
        first = metafunc.config.getoption("--first-seed", 0)
        last = first + metafunc.config.getoption("--programs", PROGRAMS)
        ranges = [range(seed, min(seed + BATCH, last)) for seed in range(first, last, BATCH)]
        names = [f"{seeds.start}-{seeds.stop - 1}" for seeds in ranges]
        metafunc.parametrize("batch", ranges, ids=names, indirect=True, scope="session")


@pytest.fixture(scope="session")
def batch(request: pytest.FixtureRequest) -> Sequence[RandomProgram]:
    """The random programs of some seeds."""
    return [random_program(seed, mistakes=MISTAKES[seed % len(MISTAKES)]) for seed in request.param]


@pytest.fixture(scope="session")
def parsed(batch: Sequence[RandomProgram]) -> Sequence[Program]:
    """The programs of the batch as our reader reads them."""
    tools = ChildrenInUse().tools
    return [parse(program.source, tools).program for program in batch]


@pytest.fixture(scope="session")
def counts(pytestconfig: pytest.Config) -> Counter[str]:
    """How often what happened, for the summary."""
    return pytestconfig.stash.setdefault(COUNTS, Counter())


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """What the random programs did."""
    found = config.stash.get(COUNTS, Counter())
    if found:
        terminalreporter.section("random composite programs")
        for name, number in sorted(found.items()):
            terminalreporter.write_line(f"{number:8d}  {name}")


@pytest.fixture
def as_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Mapping[str, Any], Sequence[str]], Any]]:
    """Writes texts into a file and imports it as a module, with the given names in it."""
    monkeypatch.syspath_prepend(tmp_path)
    names: list[str] = []

    def load(namespace: Mapping[str, Any], texts: Sequence[str]) -> Any:
        name = f"{tmp_path.name}_{len(names)}"
        names.append(name)
        text = PREAMBLE + "\n\n".join(texts)
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        importlib.invalidate_caches()
        module = importlib.import_module(name)
        vars(module).update(namespace)
        return module

    yield load
    for name in names:
        sys.modules.pop(name, None)


OutcomeOf = Callable[..., Outcome]


@pytest.fixture(scope="session")
def outcome_of() -> OutcomeOf:
    """Calls something over children, and tells what came of it in the codes of the language."""

    def run(
        children: ChildrenInUse, call: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Outcome:
        children.reset()
        try:
            value = call(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - how a program ends is what is compared
            return failure(children, error)
        return Outcome(value=value, log=tuple(children.log))

    return run


@pytest.fixture(scope="session")
def outcome_of_awaiting() -> Callable[..., Awaitable[Outcome]]:
    """Awaits something over children, and tells what came of it."""

    async def run(children: ChildrenInUse, call: Callable[..., Any], *args: Any) -> Outcome:
        children.reset()
        try:
            value = await call(*args)
        except Exception as error:  # noqa: BLE001 - how a program ends is what is compared
            return failure(children, error)
        return Outcome(value=value, log=tuple(children.log))

    return run


def failure(children: ChildrenInUse, error: Exception) -> Outcome:
    """The outcome of a program that ended with an exception."""
    code = error.code if isinstance(error, CompositeRunError) else code_of(error)
    return Outcome(code=code, log=tuple(children.log))
