"""What ``agentkit demo`` prints: seven short steps, then a table, a chart and what to type next."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import click
from rich.text import Text

from agentkit.cli.demo.loop import Answer, Measured
from agentkit.cli.output import Column, plural, print_table, say, stdout
from agentkit.cli.review_view import print_diff
from agentkit.evaluation.results.texts import shown
from agentkit.evolution.differences import ViewChange
from agentkit.evolution.round import EvolutionReport, ProposalOutcome
from agentkit.messages import JsonObject
from agentkit.metrics.intervals import Interval
from agentkit.retrieval.retriever import Retrieval

QUERY = "What does a loan of 4800 over four years cost a month?"
"""What one tool among thousands is found with."""

_SHOWN = 3
_INDENT = "   "
_LINE = 70
_BAR = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class DemoReport:
    """What the demo measured.

    Attributes:
        model: Name of the model.
        seed: What the questions were drawn with.
        before: The score questions under the original definitions.
        after: The same under the promoted ones.
        difference: How much larger the share of right answers is, paired, with a 95 % interval.
        promoted: Tools whose lesson was promoted.
        library_version: The version that ``after`` was asked with.
        rolled_back: Questions asked once more after a rollback; None when nothing was promoted.
        seconds: How long all of it took.
        store: URL of the store that keeps it.
    """

    model: str
    seed: int
    before: Measured
    after: Measured
    difference: Interval
    promoted: tuple[str, ...]
    library_version: int
    rolled_back: Measured | None = None
    seconds: float = 0.0
    store: str = ""

    @property
    def shown_tool(self) -> str:
        """The promoted tool that gained most, which is the one to show."""
        asked = dict.fromkeys(one.tool for one in self.after.answers)
        return max((one for one in asked if one in self.promoted), key=self._gained)

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        back = self.rolled_back
        return {
            "before": _measured(self.before),
            "after": _measured(self.after),
            "difference": _interval(self.difference),
            "promoted": list(self.promoted),
            "library_version": self.library_version,
            "rolled_back": None if back is None else _measured(back),
            "seconds": round(self.seconds, 1),
            "seed": self.seed,
            "model": self.model,
            "store": self.store,
        }

    def _gained(self, tool: str) -> int:
        pairs = zip(self.before.answers, self.after.answers, strict=True)
        return sum(new.is_right - old.is_right for old, new in pairs if new.tool == tool)


class DemoView:
    """Prints each step when it is done.

    Args:
        quiet: Print nothing, since the report is wanted as JSON.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._number = 0

    def catalogue(self, benchmark: str, found: Retrieval, tools: int, seconds: float) -> None:
        """How many tools there are, and which are found."""
        self._step(f"{tools:,} tools in one library ({benchmark} and five of our own)")
        self._line(f'"{QUERY}"')
        for rank, hit in enumerate(found.hits[:_SHOWN], start=1):
            name = hit.definition.name
            room = max(_LINE - len(name), 20)
            summary = shown(hit.definition.description.summary, room)
            self._line(f"  {rank}. {name}  ", (summary, "dim"))
        self._line((f"found in {1000 * seconds:.1f} ms", "dim"))

    def before(self, before: Measured, model: str) -> None:
        """How an untrained model does, and what it is told."""
        self._step(f"{model} answers {plural(before.of, 'question')}; each tool hides a rule")
        for one in _refused(before)[:_SHOWN]:
            self._answer(one)
        self._line((f"{before.right} of {before.of} right", "bold"))

    def evolved(self, outcome: EvolutionReport) -> None:
        """What the refusals of other questions taught, and what held-out ones said to it."""
        seen = outcome.looked_at
        self._step(
            f"evolve: {plural(seen.episodes, 'other question')} teach, held-out questions decide"
        )
        for one in outcome.considered:
            word, style = _DECISIONS.get(one.record.state, ("waits", "yellow"))
            self._line((f"{word:<10}", style), f"{one.record.tool_name:<15}", _held_out(one))
        for passed in outcome.passed_over:
            self._line(("nothing   ", "dim"), f"{passed.tool:<15}", (shown(passed.why, 60), "dim"))

    def learned(
        self, tool: str, changes: Sequence[ViewChange], before: Measured, after: Measured
    ) -> None:
        """One learned definition as the change of what models see, and the questions again."""
        self._number += 1
        if not self._quiet:
            click.echo()
            print_diff(changes, title=f"{self._number}  what models see of {tool} now")
        self.after(after, like=before, tool=tool)

    def after(self, after: Measured, *, like: Measured, tool: str = "") -> None:
        """The same questions under the promoted definitions, one of them in full."""
        self._step(f"the same {plural(after.of, 'question')}, asked again")
        self._example(after, like, tool)
        self._line((f"{after.right} of {after.of} right", "bold"))

    def exported(self, parameters: JsonObject, changes: Sequence[ViewChange]) -> None:
        """What was learned, in one provider's format."""
        self._step("agentkit export --format openai")
        for name in dict.fromkeys(one.place for one in changes if one.place in parameters):
            self._line(f"{json.dumps(name)}: {json.dumps(parameters[name], ensure_ascii=False)}")

    def rolled_back(self, tool: str, before: Measured, again: Measured) -> None:
        """The old answers, which come back."""
        self._step(f"agentkit rollback {tool}")
        self._example(again, before, tool)
        old = {one.task: one.arguments for one in before.answers}
        same = sum(old[one.task] == one.arguments for one in again.answers)
        self._line((f"{same} of {again.of} answers are the old ones again", "bold"))

    def summary(self, report: DemoReport) -> None:
        """The table, the chart, and what to type next."""
        click.echo()
        rows = [("before", report.before), ("after", report.after)]
        columns = [Column(title=""), *(Column(title=one, align="right") for one in _COLUMNS)]
        print_table(columns, [(name, *_row(measured)) for name, measured in rows])
        click.echo()
        for name, measured in rows:
            filled = round(_BAR * measured.share.value)
            bar = Text(f"{name:<7}")
            bar.append("█" * filled, style="red" if name == "before" else "green")
            bar.append("░" * (_BAR - filled), style="dim")
            bar.append(f" {measured.share.value:.0%}")
            stdout().print(bar, soft_wrap=True)
        low, value, high = (100 * getattr(report.difference, one) for one in _ENDS)
        click.echo(
            f"\n{value:+.0f} points ({low:+.0f} to {high:+.0f}), no weight changed; "
            f"{report.model}, seed {report.seed}, {report.seconds:.0f} s in all\n"
            "\nWith your own tools:\n"
            "  agentkit init      a project with a tool, tasks and a model\n"
            "  agentkit eval      how good it is now\n"
            "  agentkit evolve    learn from what went wrong, promote what gains"
        )
        say(f"\nEverything is kept: agentkit log --store {shlex.quote(report.store)}")

    def _example(self, answers: Measured, before: Measured, tool: str) -> None:
        """The answer to the question that stood for a tool before, if it was asked."""
        wanted = {one.task for one in _refused(before) if one.tool == tool}
        for one in answers.answers:
            if one.task in wanted:
                self._answer(one)

    def _answer(self, one: Answer) -> None:
        arguments = ", ".join(f"{name}={value!r}" for name, value in one.arguments.items())
        sign = ("✓ ", "green") if one.is_right else ("✗ ", "red")
        self._line(f'"{one.request}"')
        self._line("  ", sign, shown(f"{one.tool}({arguments})", 100))
        if one.refusal:
            self._line("    ", (shown(one.refusal, 100), "red"))

    def _step(self, title: str) -> None:
        self._number += 1
        if not self._quiet:
            click.echo()
            stdout().print(f"{self._number}  {shown(title)}", style="bold cyan", soft_wrap=True)

    def _line(self, *parts: str | tuple[str, str]) -> None:
        """One line, folded on a terminal only."""
        if self._quiet:
            return
        console, text = stdout(), Text.assemble(*parts)
        width = max(console.width - len(_INDENT), 20)
        for row in text.wrap(console, width) if console.is_terminal else [text]:
            console.print(Text(_INDENT).append_text(row), soft_wrap=True)


def _refused(measured: Measured) -> list[Answer]:
    """The first refused answer of each tool, in the order of the questions."""
    first: dict[str, Answer] = {}
    for one in measured.answers:
        if one.refusal:
            first.setdefault(one.tool, one)
    return list(first.values())


_COUNTS = ("wins", "losses", "tasks")
_COLUMNS = ("right", "of", "share", "95 % interval", "seconds")
_ENDS = ("low", "value", "high")
_DECISIONS = {"active": ("promoted", "green"), "rejected": ("rejected", "red")}


def _held_out(one: ProposalOutcome) -> str:
    """How many held-out questions went better and worse, and why that decided nothing."""
    if one.report is None:
        return shown(one.why, 60)
    wins, losses, tasks = (int(one.report.statistics[name]) for name in _COUNTS)
    rest = ": too few to decide" if one.report.decision == "wait" else ""
    return f"{wins} gained, {losses} lost of {tasks} held out{rest}"


def _row(measured: Measured) -> Iterable[str]:
    share = measured.share
    yield str(measured.right)
    yield str(measured.of)
    yield f"{share.value:.1%}"
    yield f"{share.low:.1%} to {share.high:.1%}"
    yield f"{measured.seconds:.0f}"


def _measured(measured: Measured) -> dict[str, Any]:
    return {
        "right": measured.right,
        "of": measured.of,
        "interval": _interval(measured.share),
        "seconds": round(measured.seconds, 1),
        "library_version": measured.library_version,
    }


def _interval(interval: Interval) -> dict[str, float]:
    return {name: round(getattr(interval, name), 4) for name in ("value", "low", "high")}
