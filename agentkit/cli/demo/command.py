"""``agentkit demo``: the loop, seen from the failing question to the rollback."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any

import click
from rich.text import Text

from agentkit._waiting import wait_for
from agentkit.cli.demo.loop import Answer, Demo, Measured
from agentkit.cli.demo.questions import draw_questions
from agentkit.cli.demo.tools import TOOLS
from agentkit.cli.evaluate_report import listener
from agentkit.cli.models import fetched_weights
from agentkit.cli.options import DEFAULT_MODEL, AsJson, ModelName, command, option
from agentkit.cli.output import (
    LineProgress,
    plural,
    print_json,
    print_line,
    print_table,
    right,
    say,
)
from agentkit.cli.review_view import HEADING, print_diff
from agentkit.errors import UsageError
from agentkit.evaluation.loading import load_benchmark
from agentkit.evaluation.results.texts import shown
from agentkit.evaluation.task import import_catalogue
from agentkit.evolution.differences import ViewChange, library_changes
from agentkit.evolution.round import EvolutionReport, ProposalOutcome, evolving
from agentkit.fetch import cache_directory
from agentkit.interop.export import artifact_of, formats
from agentkit.library import EpisodeFilter, Library, Store
from agentkit.library.opening import file_of, open_store
from agentkit.metrics.statistics import Interval
from agentkit.models.resolve import resolve_model
from agentkit.retrieval.cascade import default_retriever

QUERY = "What does a loan of 4800 over four years cost a month?"
"""What one tool among thousands is found with."""

_SHOWN = 3
_INDENT = 3
_LINE = 70
_BAR = 40
_DECISIONS = {"active": ("promoted", "green"), "rejected": ("rejected", "red")}


@command()
def demo(
    *,
    questions: Annotated[int, option(low=len(TOOLS))] = 30,
    seed: Annotated[int, option(type=int)] = 0,
    model: ModelName,
    store_url: Annotated[str | None, option("--store")] = None,
    as_json: AsJson,
) -> None:
    """See tools repair their own definitions: fail, learn, promote, ask again, roll back.

    A small local model answers questions for tools that refuse what their definitions hide. The
    refusals become lessons, held-out questions decide which are promoted, and other questions
    show what was gained. Needs no key, and keeps everything in a store of its own.

    Args:
        questions: How many questions the table reports on.
        seed: Draws the questions.
        store_url (URL): An empty store to keep everything in. [default: demo.db in your cache
            folder, made anew]

    Examples:
      agentkit demo
      agentkit demo --seed 7 --json
      agentkit demo --model openai:gpt-4o-mini --store sqlite:///demo.db
    """
    if model == DEFAULT_MODEL:
        fetched_weights(model.partition(":")[2])
    chosen = resolve_model(model)
    drawn = draw_questions(seed, questions)
    url = store_url or f"sqlite:///{cache_directory() / 'demo.db'}"
    view = _View(quiet=as_json)
    with _own_store(url, anew=store_url is None) as store:
        if len(store.load()) or next(iter(store.select(EpisodeFilter())), None) is not None:
            raise UsageError(
                f"{url} is in use; the demo begins with an empty store, so name a new one"
            )
        fetched = LineProgress("Fetching the public catalogue")
        catalogue = load_benchmark("bfcl", progress=fetched)
        fetched(1, 1)
        began = time.perf_counter()
        import_catalogue(store, catalogue)
        loop = Demo(store, chosen, drawn, begin=lambda title: listener(LineProgress(title)))
        view.catalogue(catalogue.name, store.load())
        report = _run(loop, view, chosen.name)
    report |= {"seconds": round(time.perf_counter() - began, 1), "seed": seed}
    report |= {"model": chosen.name, "store": url}
    if as_json:
        print_json(report)
    else:
        _print_end(report)


@contextmanager
def _own_store(url: str, *, anew: bool) -> Iterator[Store]:
    """The store to use, by one process at a time; the demo's own is made anew each time."""
    with evolving(url):
        file = file_of(url)
        if anew and file is not None:
            for name in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
                name.unlink(missing_ok=True)
        with closing(open_store(url)) as store:
            yield store


def _run(loop: Demo, view: _View, model: str) -> dict[str, Any]:
    """Everything after the catalogue, each step shown as soon as it is done; what was measured."""
    original = loop.store.load()
    before = wait_for(loop.score("before"))
    view.before(before, model)
    outcome = wait_for(loop.evolve())
    view.evolved(outcome)
    learned = loop.store.load()
    after = wait_for(loop.score("after"))
    promoted = [one.record.tool_name for one in outcome.promoted]
    again = None
    if promoted:
        asked = dict.fromkeys(one.tool for one in after.answers if one.tool in promoted)
        tool = max(asked, key=lambda name: _gained(name, before, after))
        changes = library_changes(original, learned)[tool]
        view.diff(tool, changes)
        view.after(after, like=before, tool=tool)
        exported = artifact_of(loop.store, history=False, only=(tool,))
        [provided] = formats.render(exported.library, "openai").value
        properties = provided["function"]["parameters"]["properties"]
        view.step("agentkit export --format openai")
        for name in dict.fromkeys(one.place for one in changes if one.place in properties):
            view.line(f"{json.dumps(name)}: {json.dumps(properties[name], ensure_ascii=False)}")
        again = wait_for(loop.roll_back(tool, ask=_SHOWN))
        view.rolled_back(tool, before, again)
    else:
        view.after(after, like=before, tool="")
    return {
        "before": _measured(before),
        "after": _measured(after),
        "difference": _interval(loop.difference(before, after)),
        "promoted": promoted,
        "library_version": learned.version,
        "rolled_back": None if again is None else _measured(again),
    }


def _gained(tool: str, before: Measured, after: Measured) -> int:
    pairs = zip(before.answers, after.answers, strict=True)
    return sum(new.is_right - old.is_right for old, new in pairs if new.tool == tool)


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


class _View:
    """Prints each step when it is done; nothing where the report is wanted as JSON."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._number = 0

    def step(self, title: str) -> None:
        """The heading of the next step."""
        self._number += 1
        if not self._quiet:
            click.echo()
            print_line(f"{self._number}  {shown(title)}", style=HEADING)

    def line(self, *parts: str | tuple[str, str]) -> None:
        """A line of a step: texts, or texts with a style."""
        if not self._quiet:
            print_line(Text.assemble(*parts), indent=_INDENT)

    def catalogue(self, benchmark: str, library: Library) -> None:
        """How many tools there are, and which are found."""
        retriever = default_retriever()
        wait_for(retriever.retrieve(QUERY, library))  # the index is made once
        began = time.perf_counter()
        found = wait_for(retriever.retrieve(QUERY, library))
        seconds = time.perf_counter() - began
        self.step(f"{len(library):,} tools in one library ({benchmark} and five of our own)")
        self.line(f'"{QUERY}"')
        for rank, hit in enumerate(found.hits[:_SHOWN], start=1):
            name = hit.definition.name
            summary = shown(hit.definition.description.summary, max(_LINE - len(name), 20))
            self.line(f"  {rank}. {name}  ", (summary, "dim"))
        self.line((f"found in {1000 * seconds:.1f} ms", "dim"))

    def before(self, before: Measured, model: str) -> None:
        """How an untrained model does, and what it is told."""
        self.step(f"{model} answers {plural(before.of, 'question')}; each tool hides a rule")
        for one in _refused(before)[:_SHOWN]:
            self._answer(one)
        self.line((f"{before.right} of {before.of} right", "bold"))

    def evolved(self, outcome: EvolutionReport) -> None:
        """What the refusals of other questions taught, and what held-out ones said to it."""
        taught = plural(outcome.looked_at.episodes, "other question")
        self.step(f"evolve: {taught} teach, held-out questions decide")
        for one in outcome.considered:
            word, style = _DECISIONS.get(one.record.state, ("waits", "yellow"))
            self.line((f"{word:<10}", style), f"{one.record.tool_name:<15}", _held_out(one))
        for passed in outcome.passed_over:
            self.line(("nothing   ", "dim"), f"{passed.tool:<15}", (shown(passed.why, 60), "dim"))

    def diff(self, tool: str, changes: Sequence[ViewChange]) -> None:
        """How one learned definition changes what models see."""
        self._number += 1
        if not self._quiet:
            print_diff(changes, title=f"{self._number}  what models see of {tool} now")

    def after(self, after: Measured, *, like: Measured, tool: str) -> None:
        """The same questions under the promoted definitions, one of them in full."""
        self.step(f"the same {plural(after.of, 'question')}, asked again")
        self._example(after, like, tool)
        self.line((f"{after.right} of {after.of} right", "bold"))

    def rolled_back(self, tool: str, before: Measured, again: Measured) -> None:
        """The old answers, which come back."""
        self.step(f"agentkit rollback {tool}")
        self._example(again, before, tool)
        old = {one.task: one.arguments for one in before.answers}
        same = sum(old[one.task] == one.arguments for one in again.answers)
        self.line((f"{same} of {again.of} answers are the old ones again", "bold"))

    def _example(self, answers: Measured, before: Measured, tool: str) -> None:
        """The answer to the question that stood for a tool before, if it was asked."""
        wanted = {one.task for one in _refused(before) if one.tool == tool}
        for one in answers.answers:
            if one.task in wanted:
                self._answer(one)

    def _answer(self, one: Answer) -> None:
        arguments = ", ".join(f"{name}={value!r}" for name, value in one.arguments.items())
        sign = ("✓ ", "green") if one.is_right else ("✗ ", "red")
        self.line(f'"{one.request}"')
        self.line("  ", sign, shown(f"{one.tool}({arguments})", 100))
        if one.refusal:
            self.line("    ", (shown(one.refusal, 100), "red"))


def _refused(measured: Measured) -> list[Answer]:
    """The first refused answer of each tool, in the order of the questions."""
    first: dict[str, Answer] = {}
    for one in measured.answers:
        if one.refusal:
            first.setdefault(one.tool, one)
    return list(first.values())


def _held_out(one: ProposalOutcome) -> str:
    """How many held-out questions went better and worse, and why that decided nothing."""
    if one.report is None:
        return shown(one.why, 60)
    counts = one.report.statistics
    wins, losses, tasks = (int(counts[name]) for name in ("wins", "losses", "tasks"))
    rest = ": too few to decide" if one.report.decision == "wait" else ""
    return f"{wins} gained, {losses} lost of {tasks} held out{rest}"


def _print_end(report: dict[str, Any]) -> None:
    """The table, the chart, and what to type next."""
    click.echo()
    rows = []
    for name in ("before", "after"):
        one = report[name]
        share = one["interval"]
        between = f"{share['low']:.1%} to {share['high']:.1%}"
        numbers = (one["right"], one["of"], f"{share['value']:.1%}", between)
        rows.append((name, *numbers, f"{one['seconds']:.0f}"))
    titles = ("right", "of", "share", "95 % interval", "seconds")
    print_table(["", *map(right, titles)], rows)
    click.echo()
    for name, style in (("before", "red"), ("after", "green")):
        share = report[name]["interval"]["value"]
        filled = round(_BAR * share)
        bar = (f"{name:<7}", ("█" * filled, style), ("░" * (_BAR - filled), "dim"))
        print_line(Text.assemble(*bar, f" {share:.0%}"))
    value, low, high = (100 * report["difference"][one] for one in ("value", "low", "high"))
    click.echo(
        f"\n{value:+.0f} points ({low:+.0f} to {high:+.0f}), no weight changed; "
        f"{report['model']}, seed {report['seed']}, {report['seconds']:.0f} s in all\n"
        "\nWith your own tools:\n"
        "  agentkit init      a project with a tool, tasks and a model\n"
        "  agentkit eval      how good it is now\n"
        "  agentkit evolve    learn from what went wrong, promote what gains"
    )
    say(f"\nEverything is kept: agentkit log --store {shlex.quote(report['store'])}")
