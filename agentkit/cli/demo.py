"""``agentkit demo``: the loop, seen from the failing question to the rollback.

The five tools of an office are plain code, as anybody writes them: each refuses what its definition
does not say. A call that breaks such a rule gets a sentence back, as a careful backend gives one.
Questions come in three parts that share no question and no number. Each says in plain words what is
needed, as "over four years" where the tool wants 48. The definition alone does not say how that is
written; the definition and what was learned do.
"""

from __future__ import annotations

import io
import random
import shlex
import time
import tomllib
from collections.abc import Callable, Collection, Mapping
from contextlib import closing, nullcontext, redirect_stdout
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import chain, repeat
from pathlib import Path
from typing import Annotated, Any

import click
from rich.text import Text

from agentkit._waiting import wait_for
from agentkit.cli.boundary import plugin_command
from agentkit.cli.evaluate import listener
from agentkit.cli.models import fetched_weights
from agentkit.cli.options import DEFAULT_MODEL, AsJson, ModelName, command, option
from agentkit.cli.output import (
    HEADING,
    LineProgress,
    print_json,
    print_line,
    print_table,
    right,
    say,
)
from agentkit.cli.review_view import print_diff
from agentkit.episodes import Episode
from agentkit.errors import MissingExtraError, ModelRetry, UsageError
from agentkit.evaluation.environments import with_tools
from agentkit.evaluation.expectations import ExactCalls, GoldCall
from agentkit.evaluation.held_out import HeldOut
from agentkit.evaluation.results.report import Comparison, EvaluationReport, compare
from agentkit.evaluation.results.summary import summarise
from agentkit.evaluation.results.texts import shown
from agentkit.evaluation.runner import evaluate
from agentkit.evaluation.settings import EvaluationSettings, Listener, episodes_of_run, ignore
from agentkit.evaluation.task import Benchmark, Task
from agentkit.evolution.differences import library_changes
from agentkit.evolution.learning import has_passed
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.proposers.evidence import EvidenceProposer
from agentkit.evolution.round import EvolutionReport, evolve, evolving
from agentkit.fetch import cache_directory
from agentkit.library import Author, Store
from agentkit.library.code_registration import bind_code
from agentkit.library.opening import open_store
from agentkit.metrics.statistics import Interval
from agentkit.models.base import ChatModel, ModelSettings, resolve_model
from agentkit.tools.decorator import tool
from agentkit.tools.error_messages import plural
from agentkit.tools.tool import Tool

# --- The tools and the questions ---

TERMS = (36, 48, 60)
SIZES = ("small-36", "medium-40", "large-44")
QUARTERS = ("1st", "2nd", "3rd", "4th")
COLOURS = ("red-1", "green-2", "blue-3", "yellow-4")


def _one_of(name: str, value: object, accepted: Collection[object]) -> None:
    """Refuse a value that is not accepted.

    Raises:
        ModelRetry: With the values that are.
    """
    if value not in accepted:
        values = ", ".join(map(str, accepted))
        raise ModelRetry(f"{name} must be one of {values}, got {value}")


@tool(effects=("reads",))
def loan_rate(amount: int, periods: int) -> str:
    """What a loan costs a month.

    Args:
        amount: The sum.
        periods: How long it runs.
    """
    _one_of("periods", periods, TERMS)
    return f"{amount / periods:.2f} a month"


@tool(effects=("writes",))
def order_shirts(count: int, size: str) -> str:
    """Order shirts.

    Args:
        count: How many.
        size: The size.
    """
    _one_of("size", size, SIZES)
    return f"{count} shirts ordered"


@tool(effects=("reads",))
def report_sales(year: int, quarter: str) -> str:
    """Report what was sold.

    Args:
        year: The year.
        quarter: The quarter.
    """
    _one_of("quarter", quarter, QUARTERS)
    return f"sales of the {quarter} quarter of {year}"


@tool(effects=("writes",))
def colour_lamp(lamp: int, colour: str) -> str:
    """Set the colour of a lamp.

    Args:
        lamp: Number of the lamp.
        colour: Which colour.
    """
    _one_of("colour", colour, COLOURS)
    return f"lamp {lamp} is {colour}"


@tool(effects=("writes",))
def give_discount(customer: int, share: float) -> str:
    """Give a customer a discount.

    Args:
        customer: Number of the customer.
        share: How much.
    """
    if not 0 <= share <= 1:
        raise ModelRetry(f"share must be between 0 and 1, got {share}")
    return f"customer {customer} pays {1 - share:.0%} of the price"


TOOLS: tuple[Tool, ...] = (loan_rate, order_shirts, report_sales, colour_lamp, give_discount)
"""All tools of the demo."""

_TOPICS = tomllib.loads((files("agentkit.cli") / "demo_topics.toml").read_text(encoding="utf-8"))

LEARN = 3
"""Questions about each tool that lessons come from."""

GATE = 12
"""Questions about each tool that decide what is promoted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Questions:
    """The three parts.

    Attributes:
        learn: What lessons come from. These have no gold calls: a tool's refusal is all there is.
        gate: What decides whether a lesson is promoted.
        score: What the table reports; nothing is learned or decided with them.
    """

    learn: Benchmark
    gate: Benchmark
    score: Benchmark


def draw_questions(seed: int, score: int) -> Questions:
    """Draw all questions.

    Args:
        seed: Equal seeds give equal questions.
        score: How many to report on; each tool gets its share.

    Raises:
        UsageError: There are fewer than one for each tool, or more than the numbers allow for.
    """
    each = score // len(TOOLS)
    room = min(len(range(*topic["numbers"])) for topic in _TOPICS.values()) - LEARN - GATE
    if not 1 <= each <= room:
        most = room * len(TOOLS)
        raise UsageError(f"{score} questions cannot be drawn; ask for {len(TOOLS)} to {most}")
    parts: dict[str, list[Task]] = {"learn": [], "gate": [], "score": []}
    for name in _TOPICS:
        drawn = _tasks(name, seed, LEARN + GATE + each)
        parts["learn"] += [replace(task, expects=()) for task in drawn[:LEARN]]
        parts["gate"] += drawn[LEARN : LEARN + GATE]
        parts["score"] += drawn[LEARN + GATE :]
    return Questions(
        **{
            name: Benchmark(
                name=f"demo-{name}",
                tasks=tuple(tasks),
                definitions=tuple(one.definition for one in TOOLS),
                environment=with_tools(TOOLS),
            )
            for name, tasks in parts.items()
        }
    )


def _tasks(name: str, seed: int, count: int) -> list[Task]:
    """Questions about one tool, each with a number of its own; all words come equally often."""
    topic, draw = _TOPICS[name], random.Random(f"{seed}/{name}")  # noqa: S311 - to be repeated
    words, tasks = topic["words"], []
    spoken = chain.from_iterable(draw.sample([*each], len(each)) for each in repeat(words))
    numbers = draw.sample(range(*topic["numbers"]), count)
    for at, (number, said) in enumerate(zip(numbers, spoken, strict=False)):
        arguments = {topic["number"]: number, topic["hidden"]: words[said]}
        gold = ExactCalls(calls=(GoldCall(name=name, arguments=arguments),))
        tasks.append(
            Task(
                task_id=f"{name}-{at}",
                category=name,
                request=draw.choice(topic["templates"]).format(number=number, words=said),
                offered=(name,),
                expects=(gold,),
            )
        )
    return tasks


# --- The loop ---

SETTINGS = EvaluationSettings(
    max_steps=1,  # a refused call is a wrong answer: nobody tries again
    tool_choice="required",
    settings=ModelSettings(temperature=0.0, max_tokens=64),
)
"""How every question is asked."""

_SHOWN = 3
_BAR = 40
_DECISIONS = {"active": ("promoted", "green"), "rejected": ("rejected", "red")}


class Demo:
    """What the demo does, step by step.

    Args:
        store: Keeps the library and every answer; without episodes of an earlier demo.
        model: Answers.
        questions: The three parts.
        begin: Starts the progress display of a step with that title.
    """

    def __init__(
        self,
        store: Store,
        model: ChatModel,
        questions: Questions,
        begin: Callable[[str], Listener] = lambda _: ignore,
    ) -> None:
        self.store = store
        self.model = model
        self._questions = questions
        self._begin = begin
        bind_code(store, TOOLS)
        author = Author(kind="program", name="agentkit")
        self.manager = ToolManager(store, tools=TOOLS, author=author)

    async def score(self, run: str) -> EvaluationReport:
        """Ask the questions that are reported, with the newest definitions."""
        return await self._ask(self._questions.score, run)

    async def evolve(self) -> EvolutionReport:
        """Let the tools refuse other questions, learn from that, and promote what gains.

        What the tools said is all that lessons come from. Each lesson is compared on the held-out
        questions of its tool; only a gain is promoted.
        """
        await self._ask(self._questions.learn, "learn")
        compared = HeldOut(
            benchmark=self._questions.gate,
            model=self.model,
            store=self.store,
            settings=SETTINGS,
            concurrency=1,
            begin=self._begin,
        )
        lessons, proposers = self.answers("learn").values(), [EvidenceProposer()]
        return await evolve(self.manager, proposers, episodes=lessons, compare=compared)

    async def roll_back(self, tool: str) -> EvaluationReport:
        """Take the promotion of a tool back, and ask some of the questions about it again."""
        self.manager.roll_back(tool, reason="the demo shows the old answers")
        score = self._questions.score
        about = [task for task in score.tasks if task.category == tool][:_SHOWN]
        return await self._ask(replace(score, tasks=tuple(about)), "rolled back")

    def answers(self, run: str) -> dict[str, Episode]:
        """The answers of a run by question, in the order of the questions."""
        found = {one.metadata["task"]: one for one in episodes_of_run(self.store, run)}
        tasks = (*self._questions.learn.tasks, *self._questions.score.tasks)
        return {task.task_id: found[task.task_id] for task in tasks if task.task_id in found}

    async def _ask(self, benchmark: Benchmark, run: str) -> EvaluationReport:
        await evaluate(
            benchmark,
            model=self.model,
            store=self.store,
            run=run,
            library=self.store.load(),
            settings=SETTINGS,
            concurrency=1,
            listen=self._begin(f"Asking ({run})"),
        )
        return summarise(episodes_of_run(self.store, run))


def _tool(answer: Episode) -> str:
    return answer.calls[0].name if answer.calls else ""


def _arguments(answer: Episode) -> Mapping[str, Any]:
    return answer.calls[0].arguments if answer.calls else {}


def _refusal(answer: Episode) -> str:
    """Why a tool refused a call; empty when it accepted it."""
    return next((one.failure.rule for one in answer.results if one.failure is not None), "")


@command()
def demo(
    *,
    questions: Annotated[int, option(low=len(TOOLS))] = 30,
    seed: Annotated[int, option(type=int)] = 0,
    model: ModelName,
    studio: bool = False,
    as_json: AsJson,
) -> None:
    """See tools repair their own definitions: fail, learn, promote, ask again, roll back.

    A small local model uses tools that refuse what their definitions do not say. The refusals
    become lessons, held-out questions decide which are promoted, and other questions show the
    gain. It needs no key. Everything is kept in demo.db in your cache folder, recreated each time.

    Args:
        questions: How many questions the table reports on.
        seed: Draws the questions.
        studio: Look at what came of it in the browser afterwards.

    Examples:
      agentkit demo
      agentkit demo --studio
      agentkit demo --seed 7 --json
      agentkit demo --model openai:gpt-4o-mini
    """
    pages = plugin_command("studio") if studio else None
    if studio and pages is None:
        raise MissingExtraError(
            "the studio", package="agentkit-studio", install="pip install agentkit-studio"
        )
    if model == DEFAULT_MODEL:
        fetched_weights(model.partition(":")[2])
    chosen, drawn = resolve_model(model), draw_questions(seed, questions)
    file = cache_directory() / "demo.db"
    url = f"sqlite:///{file}"
    with evolving(url):
        for name in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
            name.unlink(missing_ok=True)
        with (
            closing(open_store(url)) as store,
            redirect_stdout(io.StringIO()) if as_json else nullcontext(),
        ):
            steps = Demo(store, chosen, drawn, lambda title: listener(LineProgress(title)))
            report = _show(steps, seed)
    if as_json:
        print_json({**report, "seed": seed, "model": chosen.name, "store": url})
    else:
        say(f"\nEverything is kept: agentkit log --store {shlex.quote(url)}")
    if pages is not None:
        options = ["--store", url, "--tools", f"{__name__}:TOOLS", "--model", model]
        pages.main(options, prog_name="agentkit studio", standalone_mode=False)


def _show(demo: Demo, seed: int) -> dict[str, Any]:
    """Every step, each shown as soon as it is done; what was measured."""
    began, original = time.perf_counter(), demo.store.load()
    before = wait_for(demo.score("before"))
    asked = demo.answers("before")
    refused: dict[str, Episode] = {}
    for one in asked.values():
        if _refusal(one):
            refused.setdefault(_tool(one), one)
    count = plural(len(asked), "question")
    _print_step(f"1  {demo.model.name} answers {count}; each tool hides a rule")
    for one in list(refused.values())[:_SHOWN]:
        _print_answer(one)
    _print_right(before)
    outcome = wait_for(demo.evolve())
    others = plural(outcome.looked_at.episodes, "other question")
    _print_step(f"2  evolve: {others} teach, held-out questions decide")
    _print_decisions(outcome)
    learned = demo.store.load()
    after = wait_for(demo.score("after"))
    comparison = compare(before, after)
    promoted = [one.record.tool_name for one in outcome.promoted]
    gains = {one.name: len(one.gained) - len(one.lost) for one in comparison.categories}
    taught = [one.name for one in TOOLS if one.name in promoted]
    tool = max(taught, key=lambda name: gains.get(name, 0), default="")
    changes = library_changes(original, learned).get(tool, ())
    print_diff(changes, title=f"3  what models see of {tool or 'every tool'} now")
    _print_step(f"4  the same {count}, asked again")
    example = refused[tool].metadata["task"] if tool in refused else ""
    if example:
        _print_answer(demo.answers("after")[example])
    _print_right(after)
    again = wait_for(demo.roll_back(tool)) if tool else None
    if again is not None:
        _print_step(f"5  agentkit rollback {tool}")
        returned = demo.answers("rolled back")
        if example in returned:
            _print_answer(returned[example])
        same = sum(_arguments(asked[name]) == _arguments(one) for name, one in returned.items())
        _print(f"{same} of {len(returned)} answers are the old ones again", style="bold")
    seconds = round(time.perf_counter() - began, 1)
    _print_end({"before": before, "after": after}, comparison, f"seed {seed}, {seconds:.0f} s")
    return {
        "before": before.to_json(),
        "after": after.to_json(),
        "comparison": comparison.to_json(),
        "promoted": promoted,
        "library_version": learned.version,
        "rolled_back": None if again is None else again.to_json(),
        "seconds": seconds,
    }


def _print_step(title: str) -> None:
    click.echo()
    print_line(title, style=HEADING)


def _print(text: str | Text, style: str = "") -> None:
    """A line of a step."""
    print_line(text, style=style, indent=3)


def _print_right(report: EvaluationReport) -> None:
    _print(f"{report.total.passed} of {report.total.attempts} right", style="bold")


def _print_decisions(outcome: EvolutionReport) -> None:
    """What was learned from refusals, and what held-out questions said."""
    for one in outcome.considered:
        word, style = _DECISIONS.get(one.record.state, ("waits", "yellow"))
        why = shown(one.why, 60)
        if one.report is not None:
            counts = one.report.statistics
            wins, losses, tasks = (int(counts[name]) for name in ("wins", "losses", "tasks"))
            rest = ": too few to decide" if one.report.decision == "wait" else ""
            why = f"{wins} gained, {losses} lost of {tasks} held out{rest}"
        _print(Text.assemble((f"{word:<10}", style), f"{one.record.tool_name:<15}", why))
    for passed in outcome.passed_over:
        _print(f"nothing   {passed.tool:<15}{shown(passed.why, 60)}", style="dim")


def _print_answer(one: Episode) -> None:
    """A question, what was called, and what the tool said against it."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in _arguments(one).items())
    sign = ("✓ ", "green") if has_passed(one) else ("✗ ", "red")
    _print(f'"{one.request}"')
    _print(Text.assemble("  ", sign, shown(f"{_tool(one)}({arguments})", 100)))
    if _refusal(one):
        _print(f"    {shown(_refusal(one), 100)}", style="red")


def _print_end(
    reports: Mapping[str, EvaluationReport], comparison: Comparison, details: str
) -> None:
    """The table, the chart, and what to type next."""
    click.echo()
    rows, bars = [], []
    for name, style in (("before", "red"), ("after", "green")):
        total = reports[name].total
        share = total.accuracy or Interval(value=0.0, low=0.0, high=0.0)
        between = f"{share.low:.1%} to {share.high:.1%}"
        numbers = (total.passed, total.attempts, f"{share.value:.1%}", between)
        rows.append((name, *numbers, f"{total.seconds:.0f}"))
        filled = round(_BAR * share.value)
        bar = (f"{name:<7}", ("█" * filled, style), ("░" * (_BAR - filled), "dim"))
        bars.append(Text.assemble(*bar, f" {share.value:.0%}"))
    titles = ("right", "of", "share", "95 % interval", "seconds")
    print_table(["", *map(right, titles)], rows)
    click.echo()
    for line in bars:
        print_line(line)
    gain = comparison.total.difference
    click.echo(
        f"\n{100 * gain.value:+.0f} points ({100 * gain.low:+.0f} to {100 * gain.high:+.0f}), "
        f"no weight changed; {', '.join(reports['after'].models)}, {details} in all\n"
        "\nWith your own tools:\n"
        "  agentkit init      a project with a tool, tasks and a model\n"
        "  agentkit eval      how good it is now\n"
        "  agentkit evolve    learn from what went wrong, promote what gains"
    )
