"""``agentkit demo``: the loop, seen from the failing question to the rollback."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import click

from agentkit._waiting import wait_for
from agentkit.cli.demo.loop import Demo
from agentkit.cli.demo.questions import draw_questions
from agentkit.cli.demo.tools import TOOLS
from agentkit.cli.demo.view import QUERY, DemoReport, DemoView
from agentkit.cli.models import fetched_weights
from agentkit.cli.options import DEFAULT_MODEL, json_option, model_option
from agentkit.cli.output import print_json
from agentkit.cli.progress import Progress, progress
from agentkit.errors import UsageError
from agentkit.evaluation.loading import load_benchmark
from agentkit.evaluation.settings import EvaluationProgress, Listener
from agentkit.evaluation.task import Benchmark, import_catalogue
from agentkit.evolution.differences import library_changes
from agentkit.evolution.evolver_lock import evolving
from agentkit.fetch import cache_directory
from agentkit.interop.export import artifact_of, formats
from agentkit.library import EpisodeFilter, Library, Store
from agentkit.library.opening import file_of, open_store
from agentkit.models.resolve import resolve_model
from agentkit.retrieval.cascade import default_retriever
from agentkit.retrieval.retriever import Retrieval

QUESTIONS = 30
_ASKED_AGAIN = 3
_Begin: TypeAlias = Callable[[str], Progress]


def demo_store_url() -> str:
    """A store of the demo's own beside what was fetched, so that it never mixes with a library."""
    return f"sqlite:///{cache_directory() / 'demo.db'}"


@click.command(
    epilog="""\b
Examples:
  agentkit demo
  agentkit demo --seed 7 --json
  agentkit demo --model openai:gpt-4o-mini --store sqlite:///demo.db"""
)
@click.option(
    "--questions",
    type=click.IntRange(min=len(TOOLS)),
    metavar="N",
    default=QUESTIONS,
    show_default=True,
    help="How many questions the table reports on.",
)
@click.option(
    "--seed", type=int, metavar="N", default=0, show_default=True, help="Draws the questions."
)
@model_option
@click.option(
    "--store",
    "store_url",
    metavar="URL",
    help="An empty store to keep everything in. [default: demo.db in your cache folder, made anew]",
)
@json_option
def demo(*, questions: int, seed: int, model: str, store_url: str | None, as_json: bool) -> None:
    """See tools repair their own definitions: fail, learn, promote, ask again, roll back.

    A small local model answers questions for tools that refuse what their definitions hide. The
    refusals become lessons, held-out questions decide which are promoted, and other questions
    show what was gained. Needs no key, and keeps everything in a store of its own.
    """
    if model == DEFAULT_MODEL:
        fetched_weights(model.partition(":")[2])
    chosen = resolve_model(model)
    drawn = draw_questions(seed, questions)
    url = store_url or demo_store_url()
    view = DemoView(quiet=as_json)
    with _own_store(url, anew=store_url is None) as store, progress() as begin:
        _check_empty(store, url)
        benchmark = _catalogue(begin)
        began = time.perf_counter()
        import_catalogue(store, benchmark)
        loop = Demo(store, chosen, drawn)
        view.catalogue(benchmark.name, *_found(loop.library))
        report = _loop(loop, view, begin, model=chosen.name, seed=seed)
        report = replace(report, seconds=time.perf_counter() - began, store=url)
    if as_json:
        print_json(report.to_json())
    else:
        view.summary(report)


def _loop(loop: Demo, view: DemoView, begin: _Begin, *, model: str, seed: int) -> DemoReport:
    """Everything after the catalogue; each step is shown as soon as it is done."""
    original = loop.library
    before = wait_for(loop.score("before", listen=_listener(begin("Asking"))))
    view.before(before, model)
    outcome = wait_for(loop.evolve(listen=begin("Learning")))
    view.evolved(outcome)
    learned = loop.library
    after = wait_for(loop.score("after", listen=_listener(begin("Asking again"))))
    report = DemoReport(
        model=model,
        seed=seed,
        before=before,
        after=after,
        difference=loop.difference(before, after),
        promoted=tuple(one.record.tool_name for one in outcome.promoted),
        library_version=learned.version,
    )
    if not report.promoted:
        view.after(after, like=before)
        return report
    tool = report.shown_tool
    changes = library_changes(original, learned)[tool]
    view.learned(tool, changes, before, after)
    exported = artifact_of(loop.store, history=False, only=(tool,))
    [provided] = formats.render(exported.library, "openai").value
    view.exported(provided["function"]["parameters"]["properties"], changes)
    again = wait_for(loop.roll_back(tool, ask=_ASKED_AGAIN))
    view.rolled_back(tool, before, again)
    return replace(report, rolled_back=again)


def _catalogue(begin: _Begin) -> Benchmark:
    """The public catalogue, fetched once."""
    fetched = begin("Fetching the public catalogue")
    benchmark = load_benchmark("bfcl", progress=fetched)
    fetched(1, 1)
    return benchmark


def _found(library: Library) -> tuple[Retrieval, int, float]:
    """The tools that retrieval finds, in how many, and in how many seconds."""
    retriever = default_retriever()
    wait_for(retriever.retrieve(QUERY, library))  # the index is made once
    began = time.perf_counter()
    found = wait_for(retriever.retrieve(QUERY, library))
    return found, len(library), time.perf_counter() - began


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


def _check_empty(store: Store, url: str) -> None:
    """Refuse a store that is in use: what it learned before would count as gained.

    Raises:
        UsageError: It holds tools or episodes.
    """
    if len(store.load()) or next(iter(store.select(EpisodeFilter())), None) is not None:
        raise UsageError(f"{url} is in use; the demo begins with an empty store, so name a new one")


def _listener(told: Progress) -> Listener:
    def listen(news: EvaluationProgress) -> None:
        judged = news.passed + news.failed
        told(news.done, news.total, f"{news.passed} of {judged} right" if judged else "")

    return listen
