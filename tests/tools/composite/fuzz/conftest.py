"""Random programs in batches, the same text as a real Python module, and a count of what came."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentkit.testing.random_programs import (
    ChildrenInUse,
    Outcome,
    RandomProgram,
    code_of,
    random_program,
)

BATCH = 250
PREAMBLE = """
from math import isclose, isfinite

def is_close(a, b, tolerance=1e-9):
    return isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)

"""
COUNTS = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """``pytest tests/tools/composite/fuzz --programs 20000 --first-seed 100000``."""
    group = parser.getgroup("composites")
    group.addoption("--programs", type=int, default=1_500, help="random programs to compare")
    group.addoption("--first-seed", type=int, default=0, help="seed of the first one")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each batch of seeds."""
    if "batch" in metafunc.fixturenames:
        first = metafunc.config.getoption("--first-seed", 0)
        last = first + metafunc.config.getoption("--programs", 1_500)
        ranges = [range(seed, min(seed + BATCH, last)) for seed in range(first, last, BATCH)]
        names = [f"{seeds.start}-{seeds.stop - 1}" for seeds in ranges]
        metafunc.parametrize("batch", ranges, ids=names, indirect=True, scope="session")


@pytest.fixture(scope="session")
def batch(request: pytest.FixtureRequest) -> Sequence[RandomProgram]:
    """The random programs of some seeds."""
    return [random_program(seed) for seed in request.param]


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
    batch: Sequence[RandomProgram], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Mapping[str, Any]], Any]]:
    """Writes the batch into a file and imports it, with the given names in it."""
    name = f"random_programs_{batch[0].seed}"

    def load(namespace: Mapping[str, Any]) -> Any:
        text = PREAMBLE + "\n\n".join(program.source for program in batch)
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        importlib.invalidate_caches()
        module = importlib.import_module(name)
        vars(module).update(namespace)
        return module

    yield load
    sys.modules.pop(name, None)


@pytest.fixture(scope="session")
def outcome_of() -> Callable[[ChildrenInUse, Callable[[], Any]], Outcome]:
    """Runs something over children, and tells what came of it in the codes of the language."""

    def run(children: ChildrenInUse, call: Callable[[], Any]) -> Outcome:
        children.reset()
        try:
            value = call()
        except Exception as error:  # noqa: BLE001 - the outcome of a program
            code = getattr(error, "code", None) or code_of(error)
            return Outcome(code=code, log=tuple(children.log))
        return Outcome(value=value, log=tuple(children.log))

    return run
