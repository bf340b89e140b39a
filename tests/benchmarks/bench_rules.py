"""What learned rules cost: in a call, in what a model is shown, and in an import.

    python tests/benchmarks/bench_rules.py [--calls N] [--out FILE]

CPU time of one process in microseconds, the best of nine stretches of N calls each: what a call
pays between the model's answer and the tool (arguments against the schema, then the rules), and
what a definition pays once. ``whole call`` is a call through the executor, with the tool.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentkit import tool
from agentkit.agent.checks import ContractChecker
from agentkit.agent.executor import Execution, Executor
from agentkit.agent.selection import SelectedTools
from agentkit.agent.types import Limits
from agentkit.composites import RuleChecker
from agentkit.library.library import Library
from agentkit.messages import ToolCall
from agentkit.tools import Specification, Tool, ToolDefinition
from agentkit.tools.rules import (
    Between,
    CallBefore,
    Condition,
    Form,
    OneOf,
    Requires,
    Rule,
)
from agentkit.tools.validation import ArgumentValidator

STRETCHES = 9
ARGUMENTS = {"amount": 12_000.0, "periods": 48, "currency": "EUR", "start": "2026-05-31"}
PERIODS = OneOf(parameter="periods", values=(36, 48, 60))
RULES: dict[str, tuple[Rule, ...]] = {
    "no rule": (),
    "one_of": (PERIODS,),
    "between": (Between(parameter="amount", minimum=500, maximum=90_000, multiple_of=100),),
    "form": (Form(parameter="currency", pattern="[A-Z]{3}", words="three capital letters"),),
    "requires": (Requires(parameter="start", others=("currency",)),),
    "condition": (Condition(expression="amount > 100 * periods", words="too little"),),
    "call_before": (CallBefore(tool="log_in"),),
    "five value rules": (
        PERIODS,
        Between(parameter="amount", minimum=500, maximum=90_000),
        Form(parameter="currency", pattern="[A-Z]{3}", words="three capital letters"),
        Form(parameter="start", format="date"),
        Requires(parameter="start", others=("currency",)),
    ),
}


@tool
async def quote(amount: float, periods: int, currency: str = "EUR", start: str = "") -> float:
    """Quote a loan.

    Args:
        amount: How much.
        periods: How many months.
        currency: In what.
        start: From when.
    """
    return amount / periods


@tool
async def log_in() -> str:
    """Log in."""
    return "welcome"


def ruled(*rules: Rule) -> ToolDefinition:
    """The tool's definition with rules, made anew so that nothing is remembered."""
    return replace(quote.definition, specification=Specification(rules=rules))


def microseconds(work: Callable[[int], object], calls: int) -> float:
    """The best of some stretches, for one of the calls in a stretch."""
    work(calls)
    best = float("inf")
    for _ in range(STRETCHES):
        started = time.process_time()
        work(calls)
        best = min(best, time.process_time() - started)
    return 1e6 * best / calls


def checking(definition: ToolDefinition) -> Callable[[int], None]:
    """What stands between an answer and the tool, without the loop around it."""
    validator, contracts = ArgumentValidator(definition), ContractChecker()

    def work(calls: int) -> None:
        for _ in range(calls):
            arguments = validator.runnable(ARGUMENTS)
            assert isinstance(arguments, dict)
            assert contracts.before(definition, arguments) is None

    return work


def running(tools: list[Tool]) -> Callable[[int], None]:
    """Whole calls through the executor, after one of each tool that others wait for."""
    library = Library(tools)

    async def run(calls: int) -> None:
        executor = Executor(
            library=library,
            tools=SelectedTools.whole(library),
            shared=Execution(limits=Limits(max_calls=calls + 1)),
        )
        await executor.execute([ToolCall(call_id="0", name="log_in")])
        for number in range(min(calls, 50)):  # what one run makes
            call = ToolCall(call_id=str(number), name="quote", arguments=ARGUMENTS)
            (result,) = await executor.execute([call])
            assert result.status == "ok", result.text

    async def runs(calls: int) -> None:
        for _ in range(max(1, calls // 50)):
            await run(50)

    return lambda calls: asyncio.run(runs(calls))


def once(make: Callable[[], object]) -> Callable[[int], None]:
    """Something that a definition pays once, done over and over."""

    def work(calls: int) -> None:
        for _ in range(calls):
            make()

    return work


def import_milliseconds(code: str) -> float:
    """CPU time of a fresh interpreter, the best of five."""
    report = f"import time; t = time.process_time(); {code}; print(time.process_time() - t)"
    times = [
        float(subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    ]  # fmt: skip
    return 1e3 * min(times)


def measured(calls: int) -> list[dict[str, Any]]:
    """One row for each set of rules."""
    rows = []
    for name, rules in RULES.items():
        definition = ruled(*rules)
        executed = [quote.with_definition(definition), log_in]
        rows.append(
            {
                "rules": name,
                "check": round(microseconds(checking(definition), calls), 2),
                "whole call": round(microseconds(running(executed), calls), 1),
                "schema": round(
                    microseconds(once(lambda r=rules: ruled(*r).parameters_schema), calls // 10), 1
                ),
                "text": round(microseconds(once(lambda d=definition: d.text), calls // 10), 2),
                "checker": round(
                    microseconds(once(lambda d=definition: RuleChecker(d)), calls // 10), 1
                ),
            }
        )
    return rows


def main() -> None:
    """Measure, print a table, and write the numbers if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=2_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = measured(options.calls)
    print("| " + " | ".join(rows[0]) + " |")
    for row in rows:
        print("| " + " | ".join(map(str, row.values())) + " |")
    imports = {
        "import agentkit.tools": import_milliseconds("import agentkit.tools"),
        "then the rules": import_milliseconds(
            "import agentkit.tools, agentkit.agent.agent; t = time.process_time(); "
            "from agentkit.tools.rules import OneOf, RuleChecker, narrowed_schema"
        ),
    }
    for name, milliseconds in imports.items():
        print(f"{name}: {milliseconds:.1f} ms")
    if options.out:
        options.out.write_text(json.dumps({"rows": rows, "imports": imports}, indent=1) + "\n")


if __name__ == "__main__":
    main()
