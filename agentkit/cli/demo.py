"""``agentkit demo``: the main job."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable
from typing import get_args

import click

from agentkit.cli.demo_report import print_report
from agentkit.cli.options import FOLDER, json_option, model_option
from agentkit.cli.output import plural, print_json, say
from agentkit.cli.progress import Progress, progress
from agentkit.cli.stores import opened
from agentkit.episodes import RefineMode
from agentkit.evaluation.bfcl import RELEASE, fetch_bfcl, load_bfcl
from agentkit.evaluation.catalogue import import_catalogue
from agentkit.evaluation.job import JobProgress, Listener, MainJob
from agentkit.evaluation.main_job import run_main_job
from agentkit.evaluation.report import MainJobReport
from agentkit.library import Store
from agentkit.models.base import ChatModel
from agentkit.models.resolve import resolve_model
from agentkit.retrieval.cascade import default_retriever


def demo_store_url() -> str:
    """A store of its own, so that thousands of benchmark tools stay out of the user's library."""
    return f"sqlite:///{FOLDER}/demo.db"


@click.command(
    epilog="""\b
Examples:
  agentkit demo
  agentkit demo --questions 100 --time-budget 0 --json > report.json
  agentkit demo --model openai:gpt-4o-mini --store sqlite:///demo.db"""
)
@click.option(
    "--questions",
    type=click.IntRange(min=1),
    metavar="N",
    default=MainJob().questions,
    show_default=True,
    help="How many questions to ask, each with retrieved tools and with the benchmark's own.",
)
@model_option
@click.option(
    "--refine",
    type=click.Choice(get_args(RefineMode)),
    default="adaptive",
    show_default=True,
    help="How the model looks over its calls.",
)
@click.option(
    "--seed", type=int, metavar="N", default=0, show_default=True, help="Chooses the questions."
)
@click.option(
    "--time-budget",
    type=click.IntRange(min=0),
    metavar="SECONDS",
    default=300,
    show_default=True,
    help="Begin no further question after this long; 0 for no bound.",
)
@click.option(
    "--store",
    "store_url",
    metavar="URL",
    envvar="AGENTKIT_STORE",
    show_envvar=True,
    default=demo_store_url,
    show_default=True,
    help="Where the catalogue and the episodes are kept.",
)
@json_option
def demo(
    *,
    questions: int,
    model: str,
    refine: RefineMode,
    seed: int,
    time_budget: int,
    store_url: str,
    as_json: bool,
) -> None:
    """Run the main job: real questions, thousands of real tools, a real model.

    Imports the tool catalogue of the Berkeley Function Calling Leaderboard into a library, lets
    an agent answer a sample of its questions, compares the calls with the gold ones, keeps every
    run as an episode, and prints what happened. Needs no key: the questions come from the package
    index, and the default model runs in this process.
    """
    chosen = resolve_model(model)
    job = MainJob(questions=questions, refine=refine, seed=seed, budget_seconds=time_budget or None)
    _tell_plan(job, chosen.name, store_url)
    with opened(store_url) as store:
        report = asyncio.run(_run(chosen, store, job))
    if as_json:
        print_json(report.to_json())
        return
    print_report(report)
    _tell_next(report, store_url)


async def _run(model: ChatModel, store: Store, job: MainJob) -> MainJobReport:
    with progress() as begin:
        fetched = begin("Fetching the questions")
        folder = fetch_bfcl(progress=fetched)
        fetched(1, 1)
        benchmark = load_bfcl(folder)
    library = import_catalogue(store, benchmark)
    say(f"{plural(len(library), 'tool')} in library version {library.version}")
    with progress() as begin:
        return await run_main_job(
            benchmark,
            library,
            model=model,
            store=store,
            retriever=default_retriever(),
            job=job,
            listen=_listener(begin),
        )


def _listener(begin: Callable[[str], Progress]) -> Listener:
    steps = {"retrieval": "Measuring retrieval", "questions": "Asking the model"}
    begun: dict[str, Progress] = {}
    right = asked = 0

    def listen(news: JobProgress) -> None:
        nonlocal right, asked
        if news.stage not in begun:
            begun[news.stage] = begin(steps[news.stage])
        note = ""
        if news.answer is not None:
            asked += 1
            right += news.answer.score.exact
            note = f"{right} of {asked} exactly right"
        begun[news.stage](news.done, news.total, note)

    return listen


def _tell_plan(job: MainJob, model: str, store_url: str) -> None:
    bound = f", at most {job.budget_seconds:.0f} s" if job.budget_seconds else ""
    say(
        f"The main job, with {model}:\n"
        f"  1. fetch the questions and tools of BFCL v4 (bfcl_eval {RELEASE}; once, 2 MB)\n"
        f"  2. import the tools into {store_url}\n"
        f"  3. measure retrieval on {job.retrieval_questions} questions\n"
        f"  4. ask {job.questions} questions in {len(job.conditions)} ways each, "
        f"refine={job.refine}{bound}\n"
        "  5. compare with the gold calls, keep the episodes, print the numbers\n"
    )


def _tell_next(report: MainJobReport, store_url: str) -> None:
    store = f"--store {shlex.quote(store_url)}"
    run = f"--label run={report.run_id}"
    wrong = [answer for answer in report.answers if not answer.score.exact]
    lines = [
        "Where to look next:",
        f"  agentkit episodes list --verdict failed {run} {store}",
        f"  agentkit episodes show {wrong[0].episode_id if wrong else 'last'} {store}",
        f'  agentkit search "area of a triangle" {store}',
        f"  agentkit tools list --match weather {store}",
    ]
    say("\n".join(lines))
