"""``agentkit eval``: how good is an agent on a benchmark, or on tasks of your own."""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import click

from agentkit._waiting import wait_for
from agentkit.cli.agents import tell_binding
from agentkit.cli.evaluate_files import check_report_files, question_files, write_report
from agentkit.cli.evaluate_report import (
    earlier_run,
    listener,
    print_comparison,
    print_evaluation,
    tell_left_out,
    tell_next,
    tell_unfinished,
)
from agentkit.cli.loading import load_tools
from agentkit.cli.options import (
    answers_option,
    binding_options,
    is_typed,
    json_option,
    library_option,
    model_option,
    store_option,
    tools_option,
)
from agentkit.cli.output import print_json, say
from agentkit.cli.progress import progress
from agentkit.cli.sources import read_source
from agentkit.cli.stores import opened, opened_if_there, opened_to_read
from agentkit.episodes import RefineMode
from agentkit.errors import UsageError
from agentkit.evaluation.environments import (
    EnvironmentFactory,
    environment_from,
    tools_of,
    with_tools,
)
from agentkit.evaluation.loading import is_benchmark_name, load_benchmark, named_benchmarks
from agentkit.evaluation.recorded import RecordedAnswers, episodes_of_run
from agentkit.evaluation.results.comparison import compare
from agentkit.evaluation.results.report import EvaluationReport
from agentkit.evaluation.results.summary import summarise
from agentkit.evaluation.runner import RunOutcome, evaluate
from agentkit.evaluation.settings import (
    EvaluationSettings,
    ToolSource,
    settings_text,
)
from agentkit.evaluation.task import Benchmark, stratified
from agentkit.library import Library, Store
from agentkit.library.code_binding import by_name, pinned
from agentkit.library.code_registration import bind_code
from agentkit.models.base import ChatModel, ModelSettings, ToolChoice
from agentkit.models.resolve import resolve_model
from agentkit.tools.tool import Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """What a command line asks for.

    Attributes:
        benchmark: The questions, the sample drawn.
        library: Tools and their texts; None for the benchmark's own.
        settings: How to ask.
        run: Name of the run; empty for one that the settings give.
        concurrency: Attempts at the same time; None for one with a model in this process, else 8.
        judge: Name of the model that judges by rubrics.
    """

    benchmark: Benchmark
    library: Library | None
    settings: EvaluationSettings
    run: str
    concurrency: int | None
    judge: str | None


@click.command(
    name="eval",
    epilog="""\b
Examples:
  agentkit eval bfcl --category simple_python --sample 100
  agentkit eval tasks.jsonl --environment shop.py --model openai:gpt-4o-mini --attempts 4
  agentkit eval bfcl --library sqlite:///evolved.db --run after --report after.html
  agentkit eval --compare before after

\b
Benchmarks:
"""
    + "\n".join(f"  {name:<18} {entry.summary}" for name, entry in named_benchmarks().items()),
)
@click.argument("benchmark", required=False)
@click.option(
    "--compare",
    "compared",
    nargs=2,
    metavar="RUN RUN",
    help="Compare two runs on the tasks that both have finished, and ask nothing; --report writes "
    "the comparison.",
)
@click.option("--data", type=click.Path(path_type=Path), help="Where the benchmark's files are.")
@click.option(
    "--environment",
    metavar="FILE.py",
    help="The world that the tools of the tasks act on, as FILE.py or FILE.py:NAME.",
)
@tools_option
@model_option
@store_option
@library_option
@binding_options
@click.option(
    "--offer",
    "offer",
    type=click.Choice(get_args(ToolSource)),
    default="given",
    show_default=True,
    help="Offer the tools that the benchmark names for each question, or retrieve them.",
)
@click.option(
    "--category", "categories", multiple=True, metavar="NAME", help="Only these categories."
)
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="Ask a random sample of this many tasks, spread evenly over the categories.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, metavar="N", help="Chooses the sample."
)
@click.option(
    "--refine",
    type=click.Choice(get_args(RefineMode)),
    default="none",
    show_default=True,
    help="How the model looks over its calls.",
)
@click.option(
    "--max-refinements",
    type=click.IntRange(min=1),
    metavar="N",
    default=5,
    show_default=True,
    help="Most rounds of refinement.",
)
@click.option(
    "--attempts",
    type=click.IntRange(min=1),
    metavar="N",
    default=1,
    show_default=True,
    help="How often each task is tried, for pass@k and pass^k.",
)
@click.option(
    "--tool-choice",
    type=click.Choice(("auto", "required")),
    default="auto",
    show_default=True,
    help="Whether the model may or must call a tool.",
)
@click.option(
    "--temperature",
    type=float,
    metavar="X",
    default=0.0,
    show_default=True,
    help="Of sampling; 0 is greedy decoding.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Longest answer. [default: the model's own]",
)
@click.option(
    "--max-steps",
    type=click.IntRange(min=1),
    metavar="N",
    help="Model turns for each request. [default: 1; 21 where tools are run]",
)
@click.option("--judge", metavar="NAME", help="The model that judges tasks with a rubric.")
@click.option(
    "--rejudge",
    metavar="RUN",
    help="Ask nothing: judge the answers of this earlier run again, as a run of its own. Where "
    "only agentkit has changed since the last time, give that run a name (--run).",
)
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    metavar="N",
    help="Attempts at the same time. [default: 1 for local models, 8 for others]",
)
@click.option(
    "--run",
    metavar="NAME",
    help="Name of the run. [default: made of benchmark, model, settings and your files, so that "
    "the same command goes on where it stopped]",
)
@answers_option
@click.option(
    "--report",
    "reports",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write the report here, as .html or .md. May be given several times.",
)
@json_option
def evaluation(
    *,
    benchmark: str | None,
    compared: tuple[str, str] | None,
    model: str,
    answers: str,
    reports: tuple[Path, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Ask an agent the questions of BENCHMARK, judge the answers, and show how good it is.

    BENCHMARK is a name below or a file of tasks (JSON lines). Models see the tools as the library
    describes them; code that it does not know is registered. Every answer is kept as an episode
    with its verdict and diagnosis. The same command again goes on where an interrupted run
    stopped; finished tasks are never asked twice. When your file of tasks or your environment has
    changed, it is another run. Exit status 1: the model failed in some tasks, which the same
    command tries again.
    """
    check_report_files(reports)
    if compared:
        if is_typed("benchmark"):
            raise click.UsageError("give either a BENCHMARK or --compare, not both")
        _compare(compared, answers, reports, as_json=as_json)
        return
    if not benchmark:
        raise click.UsageError("give a BENCHMARK, see 'agentkit eval --help', or --compare RUN RUN")
    asked = _asked(benchmark, **options)
    with opened(answers) as store:
        chosen = _who(model, asked, store)
        outcome, report = wait_for(_run(chosen, store, asked))
        earlier = "" if as_json else earlier_run(store, report)
    write_report(report, reports)
    if as_json:
        print_json(report.to_json())
    else:
        print_evaluation(report)
        tell_next(report, answers, earlier)
    if outcome.unfinished:
        tell_unfinished(outcome)
        click.get_current_context().exit(1)


def _asked(
    name: str,
    *,
    data: Path | None,
    environment: str | None,
    targets: tuple[str, ...],
    store_url: str,
    library_place: str | None,
    pin: int | None,
    frozen: bool,
    offer: ToolSource,
    categories: tuple[str, ...],
    sample: int | None,
    seed: int,
    refine: RefineMode,
    max_refinements: int,
    attempts: int,
    tool_choice: ToolChoice,
    temperature: float,
    max_tokens: int | None,
    max_steps: int | None,
    judge: str | None,
    rejudge: str | None,
    concurrency: int | None,
    run: str | None,
) -> Evaluation:
    described = _Described(place=library_place, store_url=store_url, pin=pin, frozen=frozen)
    with progress() as begin:
        fetched = begin("Reading the questions")
        if is_benchmark_name(name):  # brings its own; the project's are for the project's tasks
            environment = environment if is_typed("environment") else None
            targets = targets if is_typed("targets") else ()
        own = _own_tools(environment, targets)
        benchmark = load_benchmark(
            name,
            data=data,
            tools=() if own is not None or is_benchmark_name(name) else described.known(),
            environment=own,
            progress=fetched,
        )
        fetched(1, 1)
    library = described.library(benchmark, own)
    tell_left_out(benchmark, name)
    return Evaluation(
        benchmark=_drawn(benchmark, categories, sample, seed),
        library=library,
        settings=EvaluationSettings(
            tools=offer,
            refine=refine,
            max_refinements=max_refinements,
            attempts=attempts,
            max_steps=max_steps,
            tool_choice=tool_choice,
            settings=ModelSettings(temperature=temperature, max_tokens=max_tokens),
            seed=seed if sample is not None else 0,
            sample=sample,
            categories=categories,
            files=question_files(name, (environment, *targets)),
            answers=rejudge or "",
        ),
        run=run or "",
        concurrency=concurrency,
        judge=judge,
    )


def _drawn(
    benchmark: Benchmark, categories: tuple[str, ...], sample: int | None, seed: int
) -> Benchmark:
    """The benchmark with the tasks that were asked for."""
    known = sorted({task.category for task in benchmark.tasks})
    absent = [category for category in categories if category not in known]
    if absent:
        raise UsageError(
            f"{benchmark.name} has no category {', '.join(map(repr, absent))}; "
            f"it has {', '.join(known)}"
        )
    tasks = tuple(t for t in benchmark.tasks if not categories or t.category in categories)
    if sample is not None:
        tasks = stratified(tasks, sample, seed=seed)
    return replace(benchmark, tasks=tasks)


def _own_tools(environment: str | None, targets: Sequence[str]) -> EnvironmentFactory | None:
    """What makes the world of a task out of the user's own code; None without code."""
    if environment is not None:
        return environment_from(environment)
    code = load_tools(targets)
    by_name(code, Library())  # refuses two of one name, before each task is
    return with_tools(code) if code else None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Described:
    """Where the definitions come from that models see.

    Attributes:
        place: An artifact or a store that is only read; None for the library of ``store_url``.
        store_url: The store whose library code is bound to.
        pin: A version of that library; None for the newest.
        frozen: Refuse to start where code and library differ.
    """

    place: str | None
    store_url: str
    pin: int | None
    frozen: bool

    def known(self) -> Sequence[Tool]:
        """The tools that a file of tasks may offer where no code brings any."""
        library = self._held()
        return () if library is None else tuple(library.tools.values())

    def library(self, benchmark: Benchmark, own: EnvironmentFactory | None) -> Library | None:
        """The definitions to ask with; None where the benchmark's own are all there is."""
        if own is None or self.place is not None:
            held = self._held()
            if held is None or not any(one.name in held for one in benchmark.definitions):
                return None
            say(f"library version {held.version}")
            return held
        tools = {one.name: one for task in benchmark.tasks for one in tools_of(own, task)}
        with opened(self.store_url) as store:
            if self.pin is not None:
                library, binding = pinned(store, self.pin, tools.values(), frozen=self.frozen)
            else:
                library, binding = bind_code(store, tools.values(), frozen=self.frozen)
        tell_binding(binding)
        say(f"library version {library.version}")
        return library

    def _held(self) -> Library | None:
        if self.place is not None:
            with read_source(self.place) as source:
                return source.load()
        with opened_if_there(self.store_url) as store:
            return None if store is None else store.load(self.pin)


def _who(model: str, asked: Evaluation, store: Store) -> ChatModel | RecordedAnswers:
    answers = asked.settings.answers
    if not answers:
        return resolve_model(model)
    recorded = RecordedAnswers.of(episodes_of_run(store, answers))
    if not recorded.episodes:
        raise UsageError(f"there are no finished answers of a run {answers!r} to judge again")
    return recorded


def is_local(model_name: str) -> bool:
    """Whether a model runs in this process."""
    return model_name.startswith("local:")


def concurrency_of(model_name: str) -> int:
    """Attempts at the same time where nobody says how many; a local model answers one."""
    return 1 if is_local(model_name) else 8


async def _run(
    model: ChatModel | RecordedAnswers, store: Store, asked: Evaluation
) -> tuple[RunOutcome, EvaluationReport]:
    run = asked.run or _name(model, asked)
    with progress() as begin:
        outcome = await evaluate(
            asked.benchmark,
            model=model,
            store=store,
            run=run,
            library=asked.library,
            judge=None if asked.judge is None else resolve_model(asked.judge),
            settings=asked.settings,
            concurrency=asked.concurrency or concurrency_of(model.name),
            listen=listener(begin("Asking the model")),
        )
    report = summarise(
        episodes_of_run(store, run),
        planned=Counter(
            task.category for task in asked.benchmark.tasks for _ in range(asked.settings.attempts)
        ),
        left_out=asked.benchmark.left_out,
        command=shlex.join(["agentkit", *sys.argv[1:]]),
    )
    return outcome, report


def _name(model: ChatModel | RecordedAnswers, asked: Evaluation) -> str:
    """A name that is the same for the same benchmark, model and settings."""
    library = asked.library
    text = settings_text(
        asked.settings,
        benchmark=asked.benchmark.name,
        model=model.name,
        library="" if library is None else library.digest,
    )
    short = hashlib.sha256(text.encode()).hexdigest()[:6]
    if asked.settings.answers:
        return f"{asked.settings.answers}-again-{short}"
    words = (asked.benchmark.name.split()[0].lower(), model.name.rpartition(":")[2], short)
    return "-".join(word.rpartition("/")[2] for word in words)


def _compare(
    runs: tuple[str, str], store_url: str, reports: tuple[Path, ...], *, as_json: bool
) -> None:
    with opened_to_read(store_url) as store:
        one, other = (_finished(store, run, store_url) for run in runs)
    comparison = compare(one, other)
    write_report(comparison, reports)
    if as_json:
        print_json(comparison.to_json())
    else:
        print_comparison(comparison)


def _finished(store: Store, run: str, store_url: str) -> EvaluationReport:
    report = summarise(episodes_of_run(store, run))
    if not report.results:
        raise UsageError(
            f"{store_url} holds no finished task of a run {run!r}; runs are the labels 'run' of "
            "'agentkit episodes list --json'"
        )
    return report
