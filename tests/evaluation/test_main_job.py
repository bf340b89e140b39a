"""The main job, with models whose answers are known."""

import asyncio
import json
from dataclasses import replace

import pytest

from agentkit.errors import ModelConnectionError, RunError, UsageError
from agentkit.evaluation.catalogue import import_catalogue
from agentkit.evaluation.job import MainJob, ignore
from agentkit.evaluation.main_job import not_scored, run_main_job
from agentkit.evaluation.recall import measure_recall
from agentkit.library import Library
from agentkit.library.opening import open_store
from agentkit.messages import ToolCall, UserMessage
from agentkit.retrieval.cascade import default_retriever
from agentkit.testing import FunctionModel

SCORED = 7
"""Questions of the sample that have gold calls which are compared."""


@pytest.fixture
def store():
    """An empty store."""
    return open_store("memory:")


@pytest.fixture
def perfect(sample):
    """Answers every question with its gold calls, under whichever name is offered."""
    upstream = {d.name: d.origin.original_name or d.name for d in sample.definitions}
    by_request = {task.request: task for task in sample.tasks}

    def answer(request):
        asked = [m.text for m in request.messages if isinstance(m, UserMessage)]
        task = next(by_request[text] for text in asked if text in by_request)
        offered = {definition.name for definition in request.tools}
        return [
            ToolCall(
                call_id=str(at),
                name=gold.name if gold.name in offered else upstream[gold.name],
                arguments={k: _value(v[0]) for k, v in gold.allowed.items() if v[0] != ""},
            )
            for at, gold in enumerate(task.gold)
        ]

    return FunctionModel(answer, name="perfect")


def _value(allowed):
    """An allowed value as a model writes it: the values inside an object are listed again."""
    return {k: v[0] for k, v in allowed.items()} if isinstance(allowed, dict) else allowed


@pytest.fixture
def run(sample, store):
    """Runs the job on the sample."""

    def go(model, *, listen=ignore, **settings):
        library = import_catalogue(store, sample)
        return asyncio.run(
            run_main_job(
                sample,
                library,
                model=model,
                store=store,
                retriever=default_retriever(),
                job=MainJob(**settings),
                listen=listen,
            )
        )

    return go


def test_gold_answers_are_exactly_right(run, perfect):
    """A model that makes the gold calls is right on every question and under both conditions."""
    report = run(perfect)
    retrieved, given = report.conditions
    assert (retrieved.condition, given.condition) == ("retrieved", "given")
    assert given.questions == given.exact == given.right_tools == given.gold_offered == SCORED
    assert retrieved.exact == retrieved.gold_offered
    assert report.stopped == ""
    assert given.errors == 0


def test_refinement_stops_when_two_answers_agree(run, perfect):
    """A model that repeats itself is asked once more, and that counts as agreement."""
    given = run(perfect, conditions=("given",)).conditions[0]
    assert given.refinements == 1.0
    assert given.converged == SCORED


def test_without_refinement_there_are_no_rounds(run, perfect):
    """With refine none each question is one request."""
    given = run(perfect, conditions=("given",), refine="none").conditions[0]
    assert (given.refinements, given.converged) == (0.0, 0)
    assert len(perfect.requests) == SCORED


def test_the_benchmarks_tools_go_by_their_upstream_names(run, perfect):
    """Under the condition given, a renamed tool is offered under the name that upstream uses."""
    run(perfect, conditions=("given",))
    offered = {definition.name for request in perfect.requests for definition in request.tools}
    assert "set_lamp" in offered
    assert "set_lamp__2" not in offered


def test_every_run_is_kept_with_its_verdict(run, perfect, store):
    """The store has one judged episode per question and condition, labelled with the run."""
    report = run(perfect)
    episodes = list(store.select())
    assert len(episodes) == 2 * SCORED
    assert {e.episode_id for e in episodes} == {a.episode_id for a in report.answers}
    assert all(e.metadata["run"] == report.run_id for e in episodes)
    verdicts = {e.episode_id: e.verdict.passed for e in episodes}
    assert verdicts == {a.episode_id: a.score.exact for a in report.answers}


def test_a_wrong_answer_has_evidence_in_its_episode(run, store):
    """What is wrong is written into the verdict."""
    wrong = FunctionModel(
        lambda request: [ToolCall(call_id="1", name=request.tools[0].name, arguments={})]
    )
    report = run(wrong, conditions=("given",))
    assert report.conditions[0].exact == 0
    assert all(e.verdict.evidence for e in store.select())


def test_what_is_not_asked_is_told_with_the_reason(sample):
    """Each category that is left out is in the report, with the number of its questions."""
    left_out = {entry.category: entry for entry in not_scored(sample, MainJob())}
    assert set(left_out) == {"simple_java", "irrelevance", "live_relevance"}
    assert "Java" in left_out["simple_java"].reason
    assert "calls are forced" in left_out["irrelevance"].reason
    assert "no gold calls" in left_out["live_relevance"].reason
    long_ones = not_scored(sample, MainJob(max_offered=1))
    assert [(e.category, e.questions) for e in long_ones if e.category == "multiple"] == [
        ("multiple", 2)
    ]


def test_questions_without_a_fitting_tool_are_asked_when_calls_are_free(run, sample):
    """With tool_choice auto the irrelevance questions are asked, and words are right."""
    silent = FunctionModel(lambda _: "None of these fits.")
    report = run(silent, tool_choice="auto", conditions=("given",))
    right = [answer.category for answer in report.answers if answer.score.exact]
    assert right == ["irrelevance"]


def test_the_time_budget_ends_the_job(run, perfect):
    """No question is begun after the budget, and the report says how many were asked."""
    report = run(perfect, budget_seconds=0.0)
    assert report.answers == ()
    assert report.stopped == "the time budget of 0 s was spent after 0 of 7 questions"
    assert report.retrieval.questions == SCORED + 1


def test_one_failure_is_counted_and_the_job_goes_on(run, perfect, store):
    """A model error on one question is a wrong answer, kept as an episode."""
    calls = iter(range(1000))

    async def moody(request):
        if next(calls) == 2:
            raise ModelConnectionError("the line is dead")
        return await perfect.complete(request)

    report = run(FunctionModel(moody), conditions=("given",), refine="none")
    assert report.conditions[0].errors == 1
    assert report.conditions[0].exact == SCORED - 1
    assert [e.stop_reason for e in store.select() if e.error] == ["error"]


def test_a_broken_model_ends_the_job(run, store):
    """After three failures in a row the job stops with the model's error."""

    def broken(request):
        raise ModelConnectionError("the line is dead")

    with pytest.raises(RunError, match="the line is dead"):
        run(FunctionModel(broken))
    assert len(list(store.select())) == 3


async def test_an_interrupted_question_is_kept_without_a_verdict(sample, store):
    """Cancelled in the middle of an answer, the episode is there and not judged."""
    asked = asyncio.Event()

    async def slow(request):
        asked.set()
        await asyncio.sleep(100)

    job = asyncio.create_task(
        run_main_job(
            sample,
            import_catalogue(store, sample),
            model=FunctionModel(slow),
            store=store,
            retriever=default_retriever(),
        )
    )
    await asked.wait()
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    (episode,) = store.select()
    assert episode.stop_reason == "cancelled"
    assert episode.verdict is None


def test_progress_is_told_in_order(run, perfect):
    """First retrieval, then the questions, each step once."""
    told = []
    run(perfect, questions=2, listen=told.append)
    stages = [(news.stage, news.done, news.total) for news in told]
    assert stages[:2] == [("retrieval", 1, SCORED + 1), ("retrieval", 2, SCORED + 1)]
    assert stages[-5:] == [("questions", n, 4) for n in range(5)]
    assert told[-1].answer.condition == "given"


def test_the_seed_chooses_the_questions(run, perfect):
    """The same seed asks the same questions in the same order."""
    first, again = run(perfect, questions=3), run(perfect, questions=3)
    assert [a.task_id for a in first.answers] == [a.task_id for a in again.answers]


def test_a_library_without_the_catalogue_is_refused(sample, store, perfect):
    """Questions about tools that are not there are not asked."""
    with pytest.raises(UsageError, match="lacks 6 tools of the benchmark"):
        asyncio.run(
            run_main_job(
                sample,
                Library(),
                model=perfect,
                store=store,
                retriever=default_retriever(),
            )
        )


def test_nothing_to_score_is_refused(run, sample, store, perfect):
    """A benchmark of which every question is left out is an error, not an empty report."""
    only_java = replace(sample, tasks=tuple(t for t in sample.tasks if "java" in t.category))
    library = import_catalogue(store, sample)
    with pytest.raises(UsageError, match="none of the questions can be scored"):
        asyncio.run(
            run_main_job(
                only_java, library, model=perfect, store=store, retriever=default_retriever()
            )
        )


def test_the_report_is_json(run, perfect):
    """A report survives JSON, with the counts by condition and category."""
    record = json.loads(json.dumps(run(perfect).to_json()))
    assert record["conditions"][1]["exact"] == SCORED
    simple = next(c for c in record["categories"] if c["category"] == "simple_python")
    assert simple["questions"] == {"retrieved": 3, "given": 3}


async def test_recall_counts_gold_tools(sample):
    """Recall is the share of gold tools among the first k, and namesakes are counted apart."""
    library = Library(sample.definitions)
    tasks = [task for task in sample.tasks if task.gold]
    report = await measure_recall(default_retriever(), library, tasks)
    assert report.recall[1] <= report.recall[5] <= report.recall[32] <= 1.0
    assert all(report.recall_by_name[k] >= report.recall[k] for k in report.recall)
    assert 0 < report.mean_offered <= 5
