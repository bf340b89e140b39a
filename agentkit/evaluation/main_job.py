"""The main job: real questions over a real catalogue, from retrieval to the verdict.

For a sample of a benchmark's questions an agent retrieves tools from the whole catalogue, lets
the model propose calls, refines them, and the calls are compared with the gold ones. Each
question is also asked with the few tools that the benchmark itself offers, which tells what is
lost to retrieval and what to the model. No tool is executed: catalogue entries have no code, so
validated calls end the run as deferred. Each run takes one model turn (plus refinement), as in
the benchmark: a call that breaks its schema gets no second chance here.

``evaluate`` measures: every task of any benchmark, under one condition, resumed where it stopped.
This is for looking (``agentkit demo``): both conditions of a question are asked one right after the
other, so that wherever the time budget ends the job the two have answered the same questions, and
each answer is told at once, beside what retrieval alone finds. ``evaluate`` has no such order and
no clock. It therefore has its own episodes, which carry a ``condition`` and no diagnosis and which
reports of ``evaluate`` are not made for.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from agentkit.errors import UsageError
from agentkit.evaluation.asking import Asking
from agentkit.evaluation.expectations import AnyCall, NoCall
from agentkit.evaluation.job import JobProgress, Listener, MainJob, ignore
from agentkit.evaluation.recall import measure_recall
from agentkit.evaluation.report import Answer, MainJobReport, NotScored
from agentkit.evaluation.sampling import stratified
from agentkit.evaluation.scoring import upstream_name
from agentkit.evaluation.task import Benchmark, Task
from agentkit.library import Library, Store
from agentkit.models.base import ChatModel
from agentkit.retrieval.retriever import Retriever

FOREIGN_LANGUAGES = frozenset({"simple_java", "simple_javascript"})
"""Categories whose gold answers are source text of another language."""


async def run_main_job(
    benchmark: Benchmark,
    library: Library,
    *,
    model: ChatModel,
    store: Store,
    retriever: Retriever,
    job: MainJob = MainJob(),  # noqa: B008 - immutable
    listen: Listener = ignore,
) -> MainJobReport:
    """Do the main job.

    Args:
        benchmark: The questions.
        library: The catalogue, holding at least the benchmark's definitions.
        model: Proposes the calls.
        store: Keeps the episodes, each with its verdict.
        retriever: Chooses tools from the catalogue.
        job: What to do.
        listen: Told of progress.

    Raises:
        UsageError: The library lacks tools of the benchmark, or no question can be scored.
        RunError: The model failed on three runs in a row; what was asked before is in the store.
    """
    started = time.perf_counter()
    left_out = not_scored(benchmark, job)
    tasks = [task for task in benchmark.tasks if _reason(task, job) is None]
    _check(library, tasks)
    with_gold = [task for task in benchmark.tasks if task.gold]
    retrieval = await measure_recall(
        retriever,
        library,
        stratified(with_gold, job.retrieval_questions, seed=job.seed),
        progress=lambda done, total: listen(JobProgress(stage="retrieval", done=done, total=total)),
    )
    sample = stratified(tasks, job.questions, seed=job.seed)
    asking = Asking(library, sample, model=model, store=store, retriever=retriever, job=job)
    answers, stopped = await _ask_all(asking, sample, job, listen)
    return MainJobReport(
        run_id=asking.run_id,
        benchmark=benchmark.name,
        model=model.name,
        catalogue=len(library),
        names=len({upstream_name(definition) for definition in library.definitions}),
        library_version=library.version,
        planned=len(sample),
        seed=job.seed,
        refine=job.refine,
        retrieval=retrieval,
        answers=tuple(answers),
        not_scored=left_out,
        seconds=time.perf_counter() - started,
        stopped=stopped,
    )


def not_scored(benchmark: Benchmark, job: MainJob) -> tuple[NotScored, ...]:
    """Which questions the job leaves out, and why."""
    counts = Counter(
        (task.category, reason)
        for task in benchmark.tasks
        if (reason := _reason(task, job)) is not None
    )
    return tuple(
        NotScored(category=category, questions=count, reason=reason)
        for (category, reason), count in counts.items()
    )


def _reason(task: Task, job: MainJob) -> str | None:
    """Why a task can not be scored; None when it can."""
    if task.category in FOREIGN_LANGUAGES:
        return "the gold answers are Java or JavaScript source text; agentkit eval bfcl asks these"
    if AnyCall() in task.expects:
        return "there are no gold calls to compare with"
    if NoCall() in task.expects and job.tool_choice == "required":
        return "the right answer is no call, but calls are forced in this run"
    if len(task.offered) > job.max_offered:
        return f"comes with more than {job.max_offered} tools, too long for a small model"
    return None


def _check(library: Library, tasks: Sequence[Task]) -> None:
    if not tasks:
        raise UsageError("none of the questions can be scored under these settings")
    absent = sorted({name for task in tasks for name in task.offered if name not in library})
    if absent:
        raise UsageError(
            f"the library (version {library.version}) lacks {len(absent)} tools of the benchmark, "
            f"such as {absent[:3]}; import the catalogue first"
        )


async def _ask_all(
    asking: Asking, sample: Sequence[Task], job: MainJob, listen: Listener
) -> tuple[list[Answer], str]:
    started = time.perf_counter()
    answers: list[Answer] = []
    total = len(sample) * len(job.conditions)
    listen(JobProgress(stage="questions", done=0, total=total))
    for number, task in enumerate(sample):
        spent = time.perf_counter() - started
        if job.budget_seconds is not None and spent > job.budget_seconds:
            asked = f"{number} of {len(sample)} questions"
            return answers, f"the time budget of {job.budget_seconds:.0f} s was spent after {asked}"
        for condition in job.conditions:
            answer = await asking.ask(task, condition)
            answers.append(answer)
            listen(JobProgress(stage="questions", done=len(answers), total=total, answer=answer))
    return answers, ""
