"""``agentkit eval``: measure an agent on a benchmark or on tasks of your own, and print reports."""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import click

from agentkit._waiting import wait_for
from agentkit.cli.loading import load_tools
from agentkit.cli.options import (
    Answers,
    LibraryPlace,
    ModelName,
    Refine,
    StoreUrl,
    Targets,
    command,
    is_typed,
    option,
)
from agentkit.cli.output import Column, LineProgress, Output, print_line, print_table, say, say_some
from agentkit.cli.run import report_binding
from agentkit.cli.stores import opened, opened_if_there, opened_to_read, read_source
from agentkit.episodes.replacing import replaced
from agentkit.errors import UsageError
from agentkit.evaluation.environments import environment_from, tools_of, with_tools
from agentkit.evaluation.results import pages, tables
from agentkit.evaluation.results.report import Comparison, EvaluationReport, compare
from agentkit.evaluation.results.summary import summarise
from agentkit.evaluation.results.texts import shown
from agentkit.evaluation.runner import evaluate
from agentkit.evaluation.settings import (
    EvaluationProgress,
    EvaluationSettings,
    Listener,
    ToolSource,
    episodes_of_run,
    settings_text,
)
from agentkit.evaluation.task import Benchmark, stratified
from agentkit.evaluation.task_files import is_benchmark_name, load_benchmark, named_benchmarks
from agentkit.library import Library, Store
from agentkit.library.code_binding import by_name
from agentkit.library.code_registration import bind_code
from agentkit.models.base import ChatModel, ModelSettings, resolve_model
from agentkit.tools.definition import is_instructions
from agentkit.tools.error_messages import plural

_REPORTS: Mapping[str, tuple[Callable[[EvaluationReport], str], Callable[[Comparison], str]]] = {
    ".html": (pages.report_html, pages.comparison_html),
    ".md": (pages.report_markdown, pages.comparison_markdown),
}
"""Writers of a report and of a comparison, by file suffix."""

_WORST = 8
_WIDE = frozenset({"mean score", "meaning", "gained", "lost"})
"""Columns that a terminal has no room for."""

_ELSEWHERE = frozenset({"Settings", "Left out", "Tasks"})
"""Tables of what was said before the run, or of what only a page has room for."""

_CALLING = "agentkit eval --tool-choice required (tool-choice of [eval] and [evolve])"
"""What to do when a model calls no tool on its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AskingOptions:
    """How a model is asked, by ``eval`` and by the comparisons of ``evolve``.

    Attributes:
        environment (FILE.py): The environment that the tasks' tools act on, as FILE.py or
            FILE.py:NAME.
        data (PATH): Folder of the benchmark's files.
        tool_choice: Whether the model may or must call a tool.
        system (TEXT): The system message; 'instructions/NAME' stands for the library's.
        max_tokens: Longest answer. [default: the model's own]
        max_steps: Model turns for each request. [default: 1; 21 where tools are run]
        concurrency: Concurrent tasks. [default: 1 for local models, 8 for others]
    """

    model: ModelName
    environment: str | None = None
    data: Path | None = None
    tool_choice: Literal["auto", "required"] = "auto"
    system: Annotated[str, option("--instructions")] = ""
    max_tokens: int | None = None
    max_steps: int | None = None
    concurrency: int | None = None

    def at_once(self, model: ChatModel) -> int:
        """Attempts at the same time; a local model answers one."""
        return self.concurrency or (1 if model.name.startswith("local:") else 8)

    def settings(self, **more: Any) -> EvaluationSettings:
        """The settings for asking, with greedy decoding unless something else is said."""
        generation = ModelSettings(
            temperature=more.pop("temperature", 0.0), max_tokens=self.max_tokens
        )
        return EvaluationSettings(
            tool_choice=self.tool_choice,
            max_steps=self.max_steps,
            instructions=self.system,
            settings=generation,
            **more,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalOptions:
    """What is asked, and of which definitions.

    Attributes:
        offer: Offer the tools that the benchmark gives for each question, or retrieve them.
        category (NAME): Only this category
        sample: Ask a random sample of this many tasks, spread evenly over the categories.
        attempts: How often each task is tried, for pass@k and pass^k.
        temperature (X): Sampling temperature; 0 is greedy decoding.
        judge (NAME): The model that judges tasks with a rubric.
        run (NAME): Name of the run. [default: derived from benchmark, model, settings and files, so
            that the same command resumes]
    """

    targets: Targets
    store_url: StoreUrl
    library_place: LibraryPlace
    offer: ToolSource = "given"
    category: tuple[str, ...] = ()
    sample: int | None = None
    refine: Refine
    attempts: int = 1
    temperature: Annotated[float, option(type=float)] = 0.0
    judge: str | None = None
    run: str | None = None


@command(
    "eval",
    more="Benchmarks:\n"
    + "\n".join(f"  {name:<18} {entry.summary}" for name, entry in named_benchmarks().items()),
)
def evaluation(
    benchmark: str | None = None,
    *,
    compare_runs: Annotated[tuple[str, str] | None, option("--compare", nargs=2, type=str)] = None,
    how: AskingOptions,
    what: EvalOptions,
    answers: Answers,
    report: tuple[Path, ...] = (),
) -> Output:
    """Measure an agent on BENCHMARK: ask, judge the answers, and report.

    BENCHMARK is a name below or a file of tasks (JSON lines). Models see the tools as the library
    describes them; new code is registered. Every answer is recorded as an episode with its verdict
    and diagnosis. The same command resumes an interrupted run; finished tasks are never asked
    twice. A changed task file or environment starts another run. Exit status 1: the model failed
    in some tasks; the same command retries them.

    Args:
        compare_runs (RUN RUN): Compare two runs on the tasks that both have finished; nothing is
            asked, and --report writes the comparison.
        report (FILE): Also write the report here, as .html or .md

    Examples:
      agentkit eval bfcl --category simple_python --sample 100
      agentkit eval tasks.jsonl --environment shop.py --model openai:gpt-4o-mini --attempts 4
      agentkit eval bfcl --library sqlite:///evolved.db --run after --report after.html
      agentkit eval --compare before after
    """
    for path in report:
        if path.suffix.lower() not in _REPORTS:
            raise click.UsageError(f"--report writes .html and .md files, and {path} is neither")
        if not path.expanduser().parent.is_dir():
            raise click.UsageError(f"--report {path}: there is no folder {path.parent}; make it")
    if compare_runs:
        if is_typed("benchmark"):
            raise click.UsageError("give a BENCHMARK or --compare, not both")
        with opened_to_read(answers) as store:
            one, other = (_finished(store, run, answers) for run in compare_runs)
        comparison = compare(one, other)
        _write_reports(comparison, report)
        return Output(record=comparison.to_json(), view=lambda: print_comparison(comparison))
    if not benchmark:
        raise click.UsageError("give a BENCHMARK, see 'agentkit eval --help', or --compare RUN RUN")
    is_file = not is_benchmark_name(benchmark)
    if not is_file:  # brings its own; the project's are for the project's tasks
        how = replace(how, environment=how.environment if is_typed("environment") else None)
        what = replace(what, targets=what.targets if is_typed("targets") else ())
    questions, library = _questions(benchmark, how, what)
    model = resolve_model(how.model)
    files = (benchmark if is_file else None, how.environment, *what.targets)
    settings = how.settings(
        tools=what.offer,
        refine=what.refine,
        attempts=what.attempts,
        temperature=what.temperature,
        sample=what.sample,
        categories=what.category,
        files=tuple(_with_digest(one) for one in files if one is not None),
    )
    with opened(answers) as store:
        run = what.run or _run_name(model, questions, library, settings)
        outcome = wait_for(
            evaluate(
                questions,
                model=model,
                store=store,
                run=run,
                library=library,
                judge=None if what.judge is None else resolve_model(what.judge),
                settings=settings,
                concurrency=how.at_once(model),
                listen=listener(LineProgress("Asking the model")),
            )
        )
        found = summarise(
            episodes_of_run(store, run),
            planned=Counter(one.category for one in questions.tasks for _ in range(what.attempts)),
            left_out=questions.left_out,
            command=shlex.join(["agentkit", *sys.argv[1:]]),
        )
    _write_reports(found, report)

    def view() -> None:
        print_evaluation(found)
        _print_next_steps(found, answers)

    if outcome.unfinished:
        count, error = plural(outcome.unfinished, "attempt"), shown(outcome.error, 200)
        say(f"the model failed in {count} (last: {error}); the same command retries them")
    return Output(record=found.to_json(), view=view, failed=bool(outcome.unfinished))


def _questions(
    name: str, how: AskingOptions, what: EvalOptions
) -> tuple[Benchmark, Library | None]:
    """The tasks that were asked for, and the definitions to ask with; None for the benchmark's."""
    progress = LineProgress("Reading the questions")
    own = None if how.environment is None else environment_from(how.environment)
    given = load_tools(what.targets) if own is None else ()
    by_name(given, Library())  # refuses two of one name, before each task is
    if code := [one for one in given if not is_instructions(one.name)]:
        own = with_tools(code)
    if said := [one for one in given if is_instructions(one.name)]:
        with opened(what.store_url) as store:
            report_binding(bind_code(store, said)[1])
    held = None
    if what.library_place is not None:
        with read_source(what.library_place) as source:
            held = source.load()
    elif own is None:
        with opened_if_there(what.store_url) as store:
            held = None if store is None else store.load()
    benchmark = load_benchmark(
        name,
        data=how.data,
        tools=() if own or held is None or is_benchmark_name(name) else tuple(held.tools.values()),
        environment=own,
        progress=progress,
    )
    progress(1, 1)
    library = None
    if own is not None and what.library_place is None:
        tools = {one.name: one for task in benchmark.tasks for one in tools_of(own, task)}
        with opened(what.store_url) as store:
            library, binding = bind_code(store, tools.values())
        report_binding(binding)
    elif held is not None and any(
        name in held for name in (how.system, *(one.name for one in benchmark.definitions))
    ):
        library = held
    if library is not None:
        say(f"library version {library.version}")
    report_left_out(benchmark, name)
    return _selected(benchmark, what), library


def _selected(benchmark: Benchmark, what: EvalOptions) -> Benchmark:
    """The tasks of the categories that are named, or a sample of them."""
    categories = sorted({task.category for task in benchmark.tasks})
    if absent := [one for one in what.category if one not in categories]:
        words = f"no category {absent[0]!r}; it has {', '.join(categories)}"
        raise UsageError(f"{benchmark.name} has {words}")
    chosen = what.category or categories
    tasks = tuple(task for task in benchmark.tasks if task.category in chosen)
    if what.sample is not None:
        tasks = stratified(tasks, what.sample, seed=0)
    return replace(benchmark, tasks=tasks)


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
        words = "runs are the labels 'run' of 'agentkit episodes list --json'"
        raise UsageError(f"{store_url} holds no finished task of a run {run!r}; {words}")
    return report


def _write_reports(found: EvaluationReport | Comparison, paths: Sequence[Path]) -> None:
    """Write a report or a comparison to each file, in the format that its name says."""
    for path in paths:
        of_report, of_comparison = _REPORTS[path.suffix.lower()]
        text = of_comparison(found) if isinstance(found, Comparison) else of_report(found)
        with replaced(path.expanduser()) as draft:
            draft.write_text(text, encoding="utf-8")
        say(f"written: {path}")


def print_evaluation(report: EvaluationReport) -> None:
    """Print a report as tables; what spoils it goes to stderr."""
    for note in tables.notes(report):
        say(note)
    print_line(shown(", ".join(filter(None, (report.benchmark, ", ".join(report.models))))))
    click.echo()
    for name, value, more in tables.headline(report):
        click.echo(f"{name:<22}{value:>8}  {more}")
    _print_tables(table for part in tables.report_tables(report).values() for table in part)


def print_comparison(comparison: Comparison) -> None:
    """Print a comparison as tables; its warnings go to stderr."""
    for warning in comparison.warnings:
        say(warning)
    print_line(tables.verdict_line(comparison))
    total = comparison.total
    click.echo(f"{plural(len(total.gained), 'task')} gained, {len(total.lost):,} lost")
    _print_tables(tables.comparison_tables(comparison))


def _print_tables(found: Iterable[tables.Table]) -> None:
    """Tables under their titles, as far as a terminal has room for them."""
    for table in found:
        if table.title in _ELSEWHERE:
            continue
        kept = [at for at, (title, _) in enumerate(table.columns) if title not in _WIDE]
        columns = [
            Column(title=title, align=align, fit="fold" if align == "left" else "keep")
            for title, align in (table.columns[at] for at in kept)
        ]
        most = None if table.title.startswith("Accuracy") else _WORST
        click.echo(f"\n{table.title}")
        print_table(columns, ([row[at] for at in kept] for row in table.rows[:most]))
        if most is not None and len(table.rows) > most:
            say(f"{most} of {len(table.rows):,} shown; the report in HTML or Markdown has more")


def report_left_out(benchmark: Benchmark, place: str) -> None:
    """Say which rows of a file of tasks are not asked, why, and what to do."""
    rows = benchmark.left_out
    say_some((shown(f"left out: {row}") for row in rows), rest=f" ({len(rows)} in all)")
    if rows and not is_benchmark_name(place):
        say(
            f"{len(rows):,} of {plural(len(benchmark.tasks) + len(rows), 'task')} left out: fix "
            "these lines, or give the code of their tools with --tools or --environment"
        )


def listener(report: Callable[[float, float, str], None]) -> Listener:
    """Print the progress of an evaluation for people."""

    def listen(news: EvaluationProgress) -> None:
        judged = news.passed + news.failed
        parts = {
            f"{news.passed:,} of {judged:,} passed": judged,
            f"{news.resumed:,} were done before": news.resumed,
            f"{news.unfinished:,} not finished, since the model failed": news.unfinished,
            f"the last one with: {shown(news.error, 80)}": news.error,
        }
        report(news.done, news.total, ", ".join(part for part, counts in parts.items() if counts))

    return listen


def _print_next_steps(report: EvaluationReport, answers: str) -> None:
    """Say what may be typed after an evaluation."""
    failed = "" if report.total.passed == report.total.attempts else "--verdict failed "
    lines = ["  agentkit evolve"] if failed else []
    if report.total.turn_labels.keys() == {"missing_tool_call"}:
        say(f"no tool was called in {plural(report.total.turns, 'turn')}: evolve learns from calls")
        lines = [f"  {_CALLING}"]
    store = f"--label run={shlex.quote(report.run)} --store {shlex.quote(answers)}"
    say("\n".join(["\nWhere to look next:", *lines, f"  agentkit episodes list {failed}{store}"]))
