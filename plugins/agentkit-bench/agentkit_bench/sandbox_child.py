"""The program that runs foreign code. Started by ``python_tests.py``; it imports nothing of ours.

It reads the job from its standard input, takes away from itself what it can, runs the code and
then the tests, and writes what came of it to the pipe that was its standard output. By then fd 1
and 2 lead nowhere, so whatever the code prints is lost.
"""

from __future__ import annotations

import ast
import json
import os
import runpy
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

_LONGEST = 500

Report = Callable[..., None]
"""Writes one record to the pipe, signed with the job's secret."""


def main() -> None:
    """Do the job that stands in the standard input, and end the process."""
    job = json.loads(sys.stdin.buffer.read())
    report = _reporter(job.pop("secret"))
    problem = _tests_problem(job["tests"])
    if problem:
        report(outcome="broken_tests", message=problem)
        return
    _limit(job["limits"])
    report(outcome="started")
    program = _first_program(job["readings"])
    if isinstance(program, SyntaxError):
        report(outcome="failed", error="SyntaxError", message=str(program)[:_LONGEST])
        return
    Path("solution.py").write_text(program, encoding="utf-8")
    Path("tests.py").write_text(job["tests"], encoding="utf-8")
    report(outcome="confined", confined=_confine(job["limits"]["file_bytes"]))
    _run(job["entry_point"], report)


def _reporter(secret: str) -> Report:
    pipe = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)

    def report(**record: Any) -> None:
        line = json.dumps({"secret": secret, **record}) + "\n"
        os.write(pipe, line.encode())

    return report


def _tests_problem(tests: str) -> str:
    """Why these are no tests, said before foreign code runs, which could make it look so."""
    try:
        tree = ast.parse(tests)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"they are not Python: {error}"
    names = {part.name for part in tree.body if isinstance(part, ast.FunctionDef)}
    return "" if "check" in names else "they define no function 'check'"


def _first_program(readings: list[str]) -> str | SyntaxError:
    """The first reading of the answer that is Python, or why the first is not."""
    problem: SyntaxError | None = None
    for reading in readings:
        try:
            ast.parse(reading)
        except SyntaxError as error:
            problem = problem or error
        except (ValueError, RecursionError, MemoryError) as error:
            problem = problem or SyntaxError(str(error))
        else:
            return reading
    return problem or SyntaxError("there is no code")


def _limit(limits: dict[str, int]) -> None:
    import resource

    seconds = limits["cpu_seconds"]
    _lower(resource.RLIMIT_CORE, 0, 0)
    _lower(resource.RLIMIT_CPU, seconds, seconds + 1)
    _lower(resource.RLIMIT_AS, limits["memory_bytes"], limits["memory_bytes"])


def _lower(kind: int, soft: int, hard: int) -> None:
    """Set a limit, but not above one that the system has set already."""
    import resource

    most = resource.getrlimit(kind)[1]
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    resource.setrlimit(kind, (soft, hard))


def _confine(file_bytes: int) -> list[str]:
    import resource

    _lower(resource.RLIMIT_FSIZE, file_bytes, file_bytes)
    module = runpy.run_path(str(Path(__file__).with_name("sandbox_confinement.py")))
    granted: list[str] = module["confine"](str(Path.cwd()) if file_bytes else None)
    if "processes and network" not in granted:
        _lower(resource.RLIMIT_NPROC, 0, 0)  # no process or thread beside this one
    return granted


def _run(entry_point: str, report: Report) -> None:
    stage = "solution"
    try:
        solution = runpy.run_path("solution.py", run_name="solution")
        candidate = solution[entry_point]
        stage = "tests"
        runpy.run_path("tests.py", init_globals=solution, run_name="tests")["check"](candidate)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the tests did not pass
        report(outcome="failed", stage=stage, **_told(error))
    else:
        report(outcome="passed")
    os._exit(0)  # handlers and threads of foreign code have no say any more


def _told(error: BaseException) -> dict[str, Any]:
    kind = type(error).__name__[:100]
    try:
        message = str(error)[:_LONGEST]
        steps = traceback.extract_tb(error.__traceback__)
    except BaseException as second:  # noqa: BLE001 - a foreign exception may fail to be told
        return {"error": kind, "message": f"(told by {type(second).__name__})"}
    places = [step for step in steps if Path(step.filename).name in {"solution.py", "tests.py"}]
    where = f"{Path(places[-1].filename).name}, line {places[-1].lineno}" if places else ""
    return {"error": kind, "message": message, "where": where, "line": _line(places)}


def _line(places: list[traceback.FrameSummary]) -> str:
    """The line of the tests that failed, for the report."""
    tests = [step.line or "" for step in places if step.filename.endswith("tests.py")]
    return tests[-1][:_LONGEST] if tests else ""


if __name__ == "__main__":
    main()
