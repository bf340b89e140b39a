"""``Demo``: fail, learn, promote, ask again and roll back, with a real model and an own store."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from agentkit.cli.demo.questions import Questions
from agentkit.cli.demo.tools import TOOLS
from agentkit.episodes import Episode
from agentkit.evaluation.held_out import HeldOut
from agentkit.evaluation.results.comparison import compare
from agentkit.evaluation.results.summary import summarise
from agentkit.evaluation.runner import evaluate
from agentkit.evaluation.settings import EvaluationSettings, Listener, episodes_of_run, ignore
from agentkit.evaluation.task import Benchmark
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.proposers.evidence import EvidenceProposer
from agentkit.evolution.round import EvolutionReport, evolve
from agentkit.library import Author, Store
from agentkit.library.code_registration import bind_code
from agentkit.messages import JsonObject
from agentkit.metrics.statistics import Interval, wilson_interval
from agentkit.models.base import ChatModel, ModelSettings

SETTINGS = EvaluationSettings(
    max_steps=1,  # a refused call is a wrong answer: nobody tries again
    tool_choice="required",
    settings=ModelSettings(temperature=0.0, max_tokens=64),
)
"""How every question is asked."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What the model did with one question.

    Attributes:
        task: The question's id.
        tool: The tool that it called; empty for none.
        request: The question.
        arguments: What it called the tool with.
        refusal: What the tool said against it; empty where it took the call.
        is_right: Whether the tool took exactly the gold arguments.
    """

    task: str
    tool: str
    request: str
    arguments: JsonObject
    refusal: str
    is_right: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """A set of questions, asked once.

    Attributes:
        run: Name of the run that keeps the answers.
        library_version: The library version whose definitions the model saw.
        answers: The answers, in the order of the questions.
        seconds: How long it took.
    """

    run: str
    library_version: int
    answers: tuple[Answer, ...]
    seconds: float

    @property
    def right(self) -> int:
        """How many answers are right."""
        return sum(one.is_right for one in self.answers)

    @property
    def of(self) -> int:
        """How many there are."""
        return len(self.answers)

    @property
    def share(self) -> Interval:
        """The share of right answers, with Wilson's 95 % interval."""
        return wilson_interval(self.right, self.of)


class Demo:
    """The steps of the demo, in the order in which they are to be called.

    Args:
        store: Keeps the library and every answer; without episodes of an earlier demo.
        model: Answers.
        questions: The three parts.
        begin: Begins to tell of the progress of a step with that title.
    """

    def __init__(
        self,
        store: Store,
        model: ChatModel,
        questions: Questions,
        begin: Callable[[str], Listener] = lambda _: ignore,
    ) -> None:
        self.store = store
        self._model = model
        self._questions = questions
        self._begin = begin
        bind_code(store, TOOLS)
        author = Author(kind="program", name="agentkit")
        self.manager = ToolManager(store, tools=TOOLS, author=author)

    async def score(self, run: str) -> Measured:
        """Ask the questions that are reported, with the newest definitions.

        Raises:
            RunError: The model failed for good.
        """
        return await self._ask(self._questions.score, run)

    async def evolve(self) -> EvolutionReport:
        """Let the tools refuse other questions, learn from that, and promote what gains.

        What the tools said is all that lessons come from. Each lesson is compared on the held-out
        questions of its tool; only a gain is promoted.

        Raises:
            RunError: The model failed for good.
        """
        await self._ask(self._questions.learn, "learn")
        compare_held_out = HeldOut(
            benchmark=self._questions.gate,
            model=self._model,
            store=self.store,
            settings=SETTINGS,
            concurrency=1,
            begin=self._begin,
        )
        return await evolve(
            self.manager,
            [EvidenceProposer()],
            episodes=episodes_of_run(self.store, "learn"),
            compare=compare_held_out,
        )

    async def roll_back(self, tool: str, *, ask: int) -> Measured:
        """Take the promotion of a tool back, and ask some of the questions about it again."""
        self.manager.roll_back(tool, reason="the demo shows the old answers")
        score = self._questions.score
        about = [task for task in score.tasks if task.category == tool][:ask]
        return await self._ask(replace(score, tasks=tuple(about)), "rolled back")

    def difference(self, before: Measured, after: Measured) -> Interval:
        """How much larger the second share is, with a paired 95 % interval."""
        reports = (summarise(episodes_of_run(self.store, one.run)) for one in (before, after))
        return compare(*reports).total.difference

    async def _ask(self, benchmark: Benchmark, run: str) -> Measured:
        began = time.perf_counter()
        library = self.store.load()
        await evaluate(
            benchmark,
            model=self._model,
            store=self.store,
            run=run,
            library=library,
            settings=SETTINGS,
            concurrency=1,
            listen=self._begin(f"Asking ({run})"),
        )
        seconds = time.perf_counter() - began
        episodes = {one.metadata["task"]: one for one in episodes_of_run(self.store, run)}
        return Measured(
            run=run,
            library_version=library.version,
            answers=tuple(_answer(episodes[task.task_id]) for task in benchmark.tasks),
            seconds=seconds,
        )


def _answer(episode: Episode) -> Answer:
    call = next(iter(episode.calls), None)
    failure = next((one.failure for one in episode.results if one.failure is not None), None)
    return Answer(
        task=episode.metadata["task"],
        tool="" if call is None else call.name,
        request=episode.request,
        arguments={} if call is None else call.arguments,
        refusal="" if failure is None else failure.rule,
        is_right=episode.verdict is not None and episode.verdict.passed,
    )
