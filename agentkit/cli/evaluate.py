"""``agentkit eval``: how good is an agent on a benchmark, or on tasks of your own."""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import click

from agentkit._waiting import wait_for
from agentkit.cli.agents import refine_option, tell_binding
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
    command,
    is_typed,
    json_option,
    library_option,
    model_option,
    number,
    option,
    several,
    store_option,
    tools_option,
)
from agentkit.cli.output import LineProgress, print_json, say
from agentkit.cli.stores import opened, opened_if_there, opened_to_read, read_source
from agentkit.episodes import RefineMode
from agentkit.episodes.replacing import replaced
from agentkit.errors import UsageError
from agentkit.evaluation.environments import (
    EnvironmentFactory,
    environment_from,
    tools_of,
    with_tools,
)
from agentkit.evaluation.loading import is_benchmark_name, load_benchmark, named_benchmarks
from agentkit.evaluation.results.comparison import Comparison, compare
from agentkit.evaluation.results.pages import (
    comparison_html,
    comparison_markdown,
    report_html,
    report_markdown,
)
from agentkit.evaluation.results.report import EvaluationReport
from agentkit.evaluation.results.summary import summarise
from agentkit.evaluation.runner import RunOutcome, evaluate
from agentkit.evaluation.settings import (
    EvaluationSettings,
    ToolSource,
    episodes_of_run,
    settings_text,
)
from agentkit.evaluation.task import Benchmark, stratified
from agentkit.library import Library, Store
from agentkit.library.code_binding import by_name, pinned
from agentkit.library.code_registration import bind_code
from agentkit.models.base import ChatModel, ModelSettings, ToolChoice
from agentkit.models.resolve import resolve_model

_REPORTS: Mapping[str, tuple[Callable[[EvaluationReport], str], Callable[[Comparison], str]]] = {
    ".html": (report_html, comparison_html),
    ".md": (report_markdown, comparison_markdown),
}
"""By the suffix of a file: what writes a report, and what writes a comparison."""

environment_option = option(
    "--environment",
    metavar="FILE.py",
    help="The world that the tools of the tasks act on, as FILE.py or FILE.py:NAME.",
)
data_option = option(
    "--data", type=click.Path(path_type=Path), help="Where the benchmark's files are."
)
tool_choice_option = option(
    "--tool-choice",
    type=click.Choice(("auto", "required")),
    default="auto",
    help="Whether the model may or must call a tool.",
)
max_tokens_option = number("--max-tokens", help="Longest answer. [default: the model's own]")
max_steps_option = number(
    "--max-steps", help="Model turns for each request. [default: 1; 21 where tools are run]"
)
concurrency_option = number(
    "--concurrency", help="Tasks at the same time. [default: 1 for local models, 8 for others]"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalOptions:
    """The options that say what is asked, and how."""

    data: Path | None
    environment: str | None
    targets: tuple[str, ...]
    store_url: str
    library_place: str | None
    pin: int | None
    frozen: bool
    offer: ToolSource
    categories: tuple[str, ...]
    sample: int | None
    seed: int
    refine: RefineMode
    attempts: int
    tool_choice: ToolChoice
    temperature: float
    max_tokens: int | None
    max_steps: int | None
    judge: str | None
    concurrency: int | None
    run: str | None

    def settings(self, name: str) -> EvaluationSettings:
        """How to ask; ``name`` is the benchmark's, or its file."""
        own = () if is_benchmark_name(name) else (name,)
        code = [one for one in (self.environment, *self.targets) if one is not None]
        return EvaluationSettings(
            tools=self.offer,
            refine=self.refine,
            attempts=self.attempts,
            max_steps=self.max_steps,
            tool_choice=self.tool_choice,
            settings=ModelSettings(temperature=self.temperature, max_tokens=self.max_tokens),
            seed=self.seed if self.sample is not None else 0,
            sample=self.sample,
            categories=self.categories,
            files=tuple(map(_with_digest, (*own, *code))),
        )


@command(
    "eval",
    more="Benchmarks:\n"
    + "\n".join(f"  {name:<18} {entry.summary}" for name, entry in named_benchmarks().items()),
)
@click.argument("benchmark", required=False)
@option(
    "--compare",
    "compared",
    nargs=2,
    metavar="RUN RUN",
    help="Compare two runs on the tasks that both have finished, and ask nothing; --report writes "
    "the comparison.",
)
@data_option
@environment_option
@tools_option
@model_option
@store_option
@library_option
@binding_options
@option(
    "--offer",
    type=click.Choice(get_args(ToolSource)),
    default="given",
    help="Offer the tools that the benchmark names for each question, or retrieve them.",
)
@several("--category", "categories", metavar="NAME", help="Only this category")
@number(
    "--sample", help="Ask a random sample of this many tasks, spread evenly over the categories."
)
@option("--seed", type=int, default=0, metavar="N", help="Chooses the sample.")
@refine_option
@number("--attempts", default=1, help="How often each task is tried, for pass@k and pass^k.")
@tool_choice_option
@option(
    "--temperature",
    type=float,
    metavar="X",
    default=0.0,
    help="Of sampling; 0 is greedy decoding.",
)
@max_tokens_option
@max_steps_option
@option("--judge", metavar="NAME", help="The model that judges tasks with a rubric.")
@concurrency_option
@option(
    "--run",
    metavar="NAME",
    help="Name of the run. [default: made of benchmark, model, settings and your files, so that "
    "the same command resumes where it stopped]",
)
@answers_option
@several(
    "--report",
    "reports",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write the report here, as .html or .md",
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
    with its verdict and diagnosis. The same command resumes an interrupted run; finished tasks are
    never asked twice. When your file of tasks or your environment has changed, it is another run.
    Exit status 1: the model failed in some tasks, which the same command tries again.

    Examples:
      agentkit eval bfcl --category simple_python --sample 100
      agentkit eval tasks.jsonl --environment shop.py --model openai:gpt-4o-mini --attempts 4
      agentkit eval bfcl --library sqlite:///evolved.db --run after --report after.html
      agentkit eval --compare before after
    """
    _check_reports(reports)
    if compared:
        if is_typed("benchmark"):
            raise click.UsageError("give either a BENCHMARK or --compare, not both")
        with opened_to_read(answers) as store:
            one, other = (_finished(store, run, answers) for run in compared)
        comparison = compare(one, other)
        _write_reports(comparison, reports)
        print_json(comparison.to_json()) if as_json else print_comparison(comparison)
        return
    if not benchmark:
        raise click.UsageError("give a BENCHMARK, see 'agentkit eval --help', or --compare RUN RUN")
    asked = EvalOptions(**options)
    if is_benchmark_name(benchmark):  # brings its own; the project's are for the project's tasks
        asked = replace(
            asked,
            environment=asked.environment if is_typed("environment") else None,
            targets=asked.targets if is_typed("targets") else (),
        )
    questions = _questions(benchmark, asked)
    with opened(answers) as store:
        outcome, report = wait_for(
            _run(resolve_model(model), store, questions, asked, asked.settings(benchmark))
        )
        earlier = "" if as_json else earlier_run(store, report)
    _write_reports(report, reports)
    if as_json:
        print_json(report.to_json())
    else:
        print_evaluation(report)
        tell_next(report, answers, earlier)
    if outcome.unfinished:
        tell_unfinished(outcome)
        click.get_current_context().exit(1)


def _questions(name: str, asked: EvalOptions) -> tuple[Benchmark, Library | None]:
    """The tasks that were asked for, and the definitions to ask with."""
    told = LineProgress("Reading the questions")
    own = _own_tools(asked)
    known = None if own is not None or is_benchmark_name(name) else _held_library(asked)
    benchmark = load_benchmark(
        name,
        data=asked.data,
        tools=() if known is None else tuple(known.tools.values()),
        environment=own,
        progress=told,
    )
    told(1, 1)
    library = _library(asked, benchmark, own)
    tell_left_out(benchmark, name)
    categories = sorted({task.category for task in benchmark.tasks})
    absent = [one for one in asked.categories if one not in categories]
    if absent:
        raise UsageError(
            f"{benchmark.name} has no category {', '.join(map(repr, absent))}; "
            f"it has {', '.join(categories)}"
        )
    wanted = asked.categories or categories
    tasks = tuple(task for task in benchmark.tasks if task.category in wanted)
    if asked.sample is not None:
        tasks = stratified(tasks, asked.sample, seed=asked.seed)
    return replace(benchmark, tasks=tasks), library


def _own_tools(asked: EvalOptions) -> EnvironmentFactory | None:
    """What makes the world of a task out of the user's own code; None without code."""
    if asked.environment is not None:
        return environment_from(asked.environment)
    code = load_tools(asked.targets)
    by_name(code, Library())  # refuses two of one name, before each task is
    return with_tools(code) if code else None


def _library(
    asked: EvalOptions, benchmark: Benchmark, own: EnvironmentFactory | None
) -> Library | None:
    """The definitions to ask with; None where the benchmark's own are all there is."""
    if own is None or asked.library_place is not None:
        held = _held_library(asked)
        if held is None or not any(one.name in held for one in benchmark.definitions):
            return None
        say(f"library version {held.version}")
        return held
    tools = {one.name: one for task in benchmark.tasks for one in tools_of(own, task)}
    with opened(asked.store_url) as store:
        if asked.pin is not None:
            library, binding = pinned(store, asked.pin, tools.values(), frozen=asked.frozen)
        else:
            library, binding = bind_code(store, tools.values(), frozen=asked.frozen)
    tell_binding(binding)
    say(f"library version {library.version}")
    return library


def _held_library(asked: EvalOptions) -> Library | None:
    """The library of --library, or else of --store, where there is one."""
    if asked.library_place is not None:
        with read_source(asked.library_place) as source:
            return source.load()
    with opened_if_there(asked.store_url) as store:
        return None if store is None else store.load(asked.pin)


def is_local(model_name: str) -> bool:
    """Whether a model runs in this process."""
    return model_name.startswith("local:")


def concurrency_of(model_name: str) -> int:
    """Attempts at the same time where nobody says how many; a local model answers one."""
    return 1 if is_local(model_name) else 8


async def _run(
    model: ChatModel,
    store: Store,
    asked_of: tuple[Benchmark, Library | None],
    asked: EvalOptions,
    settings: EvaluationSettings,
) -> tuple[RunOutcome, EvaluationReport]:
    benchmark, library = asked_of
    run = asked.run or _run_name(model, benchmark, library, settings)
    outcome = await evaluate(
        benchmark,
        model=model,
        store=store,
        run=run,
        library=library,
        judge=None if asked.judge is None else resolve_model(asked.judge),
        settings=settings,
        concurrency=asked.concurrency or concurrency_of(model.name),
        listen=listener(LineProgress("Asking the model")),
    )
    planned = Counter(task.category for task in benchmark.tasks for _ in range(asked.attempts))
    report = summarise(
        episodes_of_run(store, run),
        planned=planned,
        left_out=benchmark.left_out,
        command=shlex.join(["agentkit", *sys.argv[1:]]),
    )
    return outcome, report


def _run_name(
    model: ChatModel, benchmark: Benchmark, library: Library | None, settings: EvaluationSettings
) -> str:
    """A name that is the same for the same benchmark, model and settings."""
    digest = "" if library is None else library.digest
    text = settings_text(settings, benchmark=benchmark.name, model=model.name, library=digest)
    short = hashlib.sha256(text.encode()).hexdigest()[:6]
    words = (benchmark.name.split()[0].lower(), model.name.rpartition(":")[2], short)
    return "-".join(word.rpartition("/")[2] for word in words)


def _with_digest(target: str) -> str:
    """A file, or ``FILE.py:NAME``, with a digest of its content; a module stands for itself.

    A run is resumed under its name. When a gold answer or a tool has changed in between, old and
    new answers do not belong together, and two files ``tasks.jsonl`` are not one benchmark.
    """
    file, _, name = target.rpartition(":")
    for path, suffix in ((Path(target), ""), (Path(file), f":{name}")):
        if path.expanduser().is_file():
            content = path.expanduser().read_bytes()
            return f"{path.name}{suffix} {hashlib.sha256(content).hexdigest()[:8]}"
    return target


def _finished(store: Store, run: str, store_url: str) -> EvaluationReport:
    report = summarise(episodes_of_run(store, run))
    if not report.results:
        raise UsageError(
            f"{store_url} holds no finished task of a run {run!r}; runs are the labels 'run' of "
            "'agentkit episodes list --json'"
        )
    return report


def _check_reports(paths: Sequence[Path]) -> None:
    """Make sure, before anything is asked, that reports can be written.

    Raises:
        click.UsageError: A name does not end in .html or .md, or its folder does not exist.
    """
    for path in paths:
        if path.suffix.lower() not in _REPORTS:
            raise click.UsageError(f"--report writes .html and .md files, and {path} is neither")
        if not path.expanduser().parent.is_dir():
            raise click.UsageError(f"--report {path}: there is no folder {path.parent}; make it")


def _write_reports(shown: EvaluationReport | Comparison, paths: Sequence[Path]) -> None:
    """Write a report or a comparison to each file, in the format that its name says."""
    for path in paths:
        of_report, of_comparison = _REPORTS[path.suffix.lower()]
        text = of_comparison(shown) if isinstance(shown, Comparison) else of_report(shown)
        with replaced(path.expanduser()) as draft:
            draft.write_text(text, encoding="utf-8")
        say(f"written: {path}")
