"""One attempt at a task: every user turn run, judged and diagnosed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agentkit.agent.agent import Agent
from agentkit.agent.session import new_episode_id
from agentkit.agent.types import Limits, RefineSettings, RunResult, SelectionPolicy, ToolPolicy
from agentkit.diagnosis.labelling import diagnose
from agentkit.episodes import Diagnosis, Episode, Evidence, Recovery, Verdict
from agentkit.episodes.labels import INSTRUCTIONS, INSTRUCTIONS_DIGEST
from agentkit.errors import (
    AgentKitError,
    DuplicateToolError,
    ModelError,
    ModelResponseError,
    ModelStatusError,
    RunError,
    ToolNotFoundError,
)
from agentkit.evaluation.environments import BrokenTaskError, make_world
from agentkit.evaluation.expectations import (
    AllowedCalls,
    CustomExpectation,
    ExactCalls,
    Expectation,
)
from agentkit.evaluation.settings import EvaluationLabels, EvaluationSettings, attempt_seed
from agentkit.evaluation.task import Benchmark, Environment, Task, UserTurn
from agentkit.evaluation.verifiers.making import AllOf, Scene, verifier_for
from agentkit.library import Library
from agentkit.messages import JsonObject, Message, ToolMessage
from agentkit.models.base import ChatModel, ModelRequest, ModelResponse
from agentkit.retrieval.retriever import Retriever
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import CallBefore, Rule
from agentkit.tools.tool import Tool

# --- the tools of a turn --------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """The agent's configuration.

    Attributes:
        library: The tools that may be offered.
        definitions: The tools that calls are judged by, under the names that they are called by.
        expects: What is right, in those names.
        library_names: The catalogue's names of the tools that are offered under another one, by
            that name (``Episode.library_names``).
    """

    library: Library
    definitions: tuple[ToolDefinition, ...]
    expects: tuple[Expectation, ...]
    library_names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Staging:
    """Sets the stage for user turns of one benchmark.

    Attributes:
        library: Where the definitions come from.
        retrieves: Whether the agent finds its tools in the library, rather than being given those
            that the benchmark names.
        upstream_names: The benchmark's own names of tools that have another one in the catalogue.
    """

    library: Library
    retrieves: bool
    upstream_names: Mapping[str, str]

    @classmethod
    def of(cls, benchmark: Benchmark, library: Library, *, retrieves: bool) -> Staging:
        """The staging for ``benchmark``; tools that ``library`` lacks come from the benchmark."""
        adapted = _adapted(benchmark, library, everything=retrieves)
        own = [d for d in benchmark.definitions if d.name not in library]
        renamed = {
            definition.name: definition.origin.original_name
            for definition in benchmark.definitions
            if definition.origin.original_name
        }
        whole = adapted.with_tools(own) if own else adapted
        return cls(library=whole, retrieves=retrieves, upstream_names=renamed)

    def stage(
        self, offered: Sequence[str], expects: Sequence[Expectation], world: Environment | None
    ) -> Stage:
        """The stage for one user turn.

        Args:
            offered: Names, in the catalogue, of the tools that are offered by now.
            expects: What is right, in the catalogue's names.
            world: The environment that runs the tools, if any does.
        """
        bound = {} if world is None else {tool.name: tool for tool in world.tools()}
        if self.retrieves:
            # Without a world it stays the same object, by which an agent's caches know it.
            running = [self._tool(name, bound) for name in bound]
            library = self.library.with_tools(running) if running else self.library
            gold = _gold_names(expects)
            judged = {name: library.get(name) for name in (*offered, *gold)}
            return Stage(
                library=library,
                definitions=tuple(tool.definition for tool in judged.values() if tool is not None),
                expects=tuple(expects),
            )
        tools = {name: self._tool(name, bound) for name in dict.fromkeys(offered)}
        names = self._upstream_names(tools)
        library = Library(
            [_renamed_tool(tool, names) for tool in tools.values()],
            version=self.library.version,
        )
        return Stage(
            library=library,
            definitions=library.definitions,
            expects=tuple(_renamed(expectation, names) for expectation in expects),
            library_names={own: name for name, own in names.items() if own != name},
        )

    def _tool(self, name: str, bound: Mapping[str, Tool]) -> Tool:
        """The tool as the library describes it and the environment runs it."""
        described = self.library.get(name)
        running = bound.get(name)
        if running is None:
            return self.library[name]  # raises ToolNotFoundError with the nearest names
        return running if described is None else running.with_definition(described.definition)

    def _upstream_names(self, tools: Iterable[str]) -> dict[str, str]:
        """The benchmark's own name for each tool, as far as that leaves no two alike."""
        names = {name: self.upstream_names.get(name, name) for name in tools}
        return names if len(set(names.values())) == len(names) else {name: name for name in names}


def _adapted(benchmark: Benchmark, library: Library, *, everything: bool) -> Library:
    """The library with its tools as the benchmark offers tools; only those that it may offer."""
    adapt = benchmark.adapt
    if adapt is None:
        return library
    names = library.tools if everything else {one.name for one in benchmark.definitions}
    tools = [tool for tool in library if tool.name in names]
    return library.with_tools(tool.with_definition(adapt(tool.definition)) for tool in tools)


def _renamed_tool(tool: Tool, names: Mapping[str, str]) -> Tool:
    """The tool with its upstream name, and with those of the tools that its rules speak of."""
    definition = tool.definition
    rules = tuple(_renamed_rule(rule, names) for rule in definition.specification.rules)
    renamed = replace(
        definition,
        name=names[tool.name],
        specification=replace(definition.specification, rules=rules),
    )
    return tool if renamed == definition else tool.with_definition(renamed)


def _renamed_rule(rule: Rule, names: Mapping[str, str]) -> Rule:
    if not isinstance(rule, CallBefore):
        return rule
    return replace(rule, tool=names.get(rule.tool, rule.tool))


def _renamed(expectation: Expectation, names: Mapping[str, str]) -> Expectation:
    """The expectation with the names that the calls will have."""
    match expectation:
        case AllowedCalls():
            allowed = (replace(c, name=names.get(c.name, c.name)) for c in expectation.calls)
            return replace(expectation, calls=tuple(allowed))
        case ExactCalls():
            calls = (replace(c, name=names.get(c.name, c.name)) for c in expectation.calls)
            return replace(expectation, calls=tuple(calls))
        case CustomExpectation():
            return expectation.renamed(names)
        case _:
            return expectation


def _gold_names(expects: Iterable[Expectation]) -> Iterator[str]:
    for expectation in expects:
        if isinstance(expectation, AllowedCalls | ExactCalls):
            yield from (call.name for call in expectation.calls)
        elif isinstance(expectation, CustomExpectation):
            yield from expectation.gold_tools


# --- the model ------------------------------------------------------------------------------------


class WatchedModel:
    """Passes requests on, and notes the state of the world before each turn.

    A turn begins when there are more results to read than before; rounds of refinement run no tool
    and add none. Foreign exceptions, which adapters of plugins let through, become ``ModelError``:
    one of these is an attempt that the model failed, not the end of a run of thousands.

    Args:
        model: Answers.
        world: What its calls act on, if they run.
    """

    def __init__(self, model: ChatModel, world: Environment | None) -> None:
        self._model = model
        self._world = world
        self._seen: dict[int, JsonObject] = {}

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """The model's answer.

        Raises:
            ModelError: The model raised.
        """
        results = sum(isinstance(message, ToolMessage) for message in request.messages)
        if self._world is not None and results not in self._seen:
            self._seen[results] = self._world.state()
        try:
            return await self._model.complete(request)
        except AgentKitError:
            raise
        except Exception as error:
            message = f"{self.name} raised {type(error).__name__}: {error}"
            raise ModelError(message) from error

    def states(self) -> tuple[JsonObject, ...]:
        """The state before each turn, and the one now; none without a world."""
        return () if self._world is None else (*self._seen.values(), self._world.state())


STEPS_IN_AN_ENVIRONMENT = 21
"""Model turns for each thing the user says: the multi-turn part of BFCL stops after the 21st."""

_MANY = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One try at a task.

    Attributes:
        task: The task.
        number: Which try it is, from 0.
    """

    task: Task
    number: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptResult:
    """The result of an attempt.

    Attributes:
        episodes: One for each user turn that was run.
        is_finished: Whether it went to its end. An attempt that a model error of passing nature
            (no connection, a timeout, a busy server) cut short is not, and is tried again.
        error: The model's error, if there was one.
    """

    episodes: tuple[Episode, ...]
    is_finished: bool
    error: ModelError | None = None

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts of the user turns that were judged."""
        return tuple(one.verdict for one in self.episodes if one.verdict is not None)

    @property
    def passed(self) -> bool:
        """Whether all user turns were run and every judged one passed."""
        return self.is_finished and bool(self.episodes) and is_passed(self.episodes)


def is_passed(episodes: Sequence[Episode]) -> bool:
    """Whether the episodes of one attempt are all there, and every judged one passed."""
    verdicts = [one.verdict for one in episodes if one.verdict is not None]
    labels = EvaluationLabels.of(episodes[-1])
    is_whole = labels is not None and len(episodes) == labels.user_turns
    return is_whole and bool(verdicts) and all(verdict.passed for verdict in verdicts)


@dataclass(frozen=True, kw_only=True)
class AttemptRunner:
    """Makes attempts at the tasks of one benchmark.

    Attributes:
        benchmark: The questions.
        staging: Sets out the tools.
        model: Answers.
        judge: Judges by rubrics; None where no task needs it.
        retriever: Finds tools, where they are to be found.
        settings: How to ask.
        labels: What the labels of all episodes have in common: run, benchmark and settings.
    """

    benchmark: Benchmark
    staging: Staging
    model: ChatModel
    judge: ChatModel | None
    retriever: Retriever | None
    settings: EvaluationSettings
    labels: EvaluationLabels

    async def run(self, attempt: Attempt) -> AttemptResult:
        """Try the task once, in a world of its own."""
        try:
            conversation = _Conversation(runner=self, attempt=attempt)
            return await conversation.run()
        except (BrokenTaskError, ToolNotFoundError, DuplicateToolError) as error:
            return AttemptResult(episodes=(self._unasked(attempt, error),), is_finished=True)

    def metadata(self, attempt: Attempt, user_turn: int, *, is_last: bool) -> dict[str, str]:
        """The labels of one episode."""
        task = attempt.task
        labels = replace(
            self.labels,
            task=task.task_id,
            category=task.category,
            attempt=attempt.number,
            user_turn=user_turn,
            user_turns=len(task.turns),
            ends=is_last,
        )
        held = self.instructions
        told = {} if held is None else {INSTRUCTIONS: held.name, INSTRUCTIONS_DIGEST: held.digest}
        return {**labels.to_metadata(), **told}

    @property
    def instructions(self) -> ToolDefinition | None:
        """The library's instructions that the settings name; None for a text, or nothing."""
        return self.staging.library.instructions.get(self.settings.instructions)

    def _unasked(self, attempt: Attempt, error: Exception) -> Episode:
        """The record of a task that could not be asked, which says nothing about the agent."""
        reason = f"the task could not be asked: {error}"
        verdict = Verdict(
            passed=False,
            evidence=(Evidence(kind="gold_error", message=reason),),
            verifier="evaluation",
            fault="gold_error",
        )
        return Episode(
            episode_id=new_episode_id(),
            request=attempt.task.request,
            stop_reason="error",
            error=reason,
            model=self.model.name,
            verdict=verdict,
            diagnosis=Diagnosis(label="gold_error"),
            metadata=self.metadata(attempt, 0, is_last=True),
        )


class _Conversation:
    """The state of one attempt: its world, what was said, what is kept."""

    def __init__(self, runner: AttemptRunner, attempt: Attempt) -> None:
        self._with = runner
        self._attempt = attempt
        self._task = attempt.task
        self._session = new_episode_id()
        self._world = make_world(runner.benchmark, self._task)
        self._reference = make_world(runner.benchmark, self._task)
        self._said: Sequence[Message] | RunResult = self._task.history
        self._kept: list[Episode] = []
        self._watcher = WatchedModel(runner.model, self._world)
        self._pending: tuple[Recovery, ...] = ()

    async def run(self) -> AttemptResult:
        """Take the user's turns one after another."""
        offered: list[str] = []
        turns = self._task.turns
        for number, turn in enumerate(turns):
            offered += turn.offers
            stage = self._with.staging.stage(offered, turn.expects, self._world)
            try:
                result = await self._answer(turn, stage)
            except RunError as error:
                return await self._broken(error, stage, number)
            goes_on = result.stop_reason == "finished" and number + 1 < len(turns)
            await self._keep(result.episode, stage, number, is_last=not goes_on)
            if not goes_on:
                break
            self._said = result
        return AttemptResult(episodes=tuple(self._kept), is_finished=True)

    async def _answer(self, turn: UserTurn, stage: Stage) -> RunResult:
        self._watcher = WatchedModel(self._with.model, self._world)
        agent = self._agent(self._watcher, stage)
        return await agent.run(turn.request, history=self._said)

    def _agent(self, model: ChatModel, stage: Stage) -> Agent:
        settings = self._with.settings
        generation = settings.settings
        if generation.seed is not None:
            own = attempt_seed(generation.seed, self._task.task_id, self._attempt.number)
            generation = replace(generation, seed=own)
        held = self._with.instructions
        text = settings.instructions if held is None else held.text
        return Agent(
            model,
            library=stage.library,
            instructions="\n\n".join(filter(None, (text, self._task.instructions))),
            retriever=self._with.retriever,
            # Where one answer is judged it is to be the call.
            selection=SelectionPolicy(search_tool=self._max_steps > 1, examples=settings.examples),
            refine=RefineSettings(mode=settings.refine, max_refinements=settings.max_refinements),
            limits=Limits(max_steps=self._max_steps, max_calls=_MANY),
            # The world was made for this attempt; how often to try is the model's business.
            tool_policy=ToolPolicy(
                approve=lambda *_: True, choice=settings.tool_choice, retries=_MANY, repeats=1
            ),
            settings=generation,
            name="evaluation",
        )

    @property
    def _max_steps(self) -> int:
        return self._with.settings.max_steps or (
            1 if self._world is None else STEPS_IN_AN_ENVIRONMENT
        )

    async def _keep(self, episode: Episode, stage: Stage, number: int, *, is_last: bool) -> None:
        verdict = await self._verdict(episode, stage)
        diagnosis = diagnose(
            episode,
            stage.library,
            verdict,
            pending=self._pending,
            states=self._watcher.states(),
        )
        self._pending = diagnosis.pending
        self._kept.append(
            replace(
                episode,
                session_id=self._session,
                verdict=verdict,
                diagnosis=diagnosis,
                metadata=self._with.metadata(self._attempt, number, is_last=is_last),
                library_names=stage.library_names,
            )
        )

    async def _verdict(self, episode: Episode, stage: Stage) -> Verdict | None:
        if not stage.expects:
            return None
        scene = Scene(
            definitions=stage.definitions,
            environment=self._world,
            reference=self._reference,
            earlier=tuple(self._kept),
            judge=self._with.judge,
        )
        parts = [verifier_for(expectation, scene) for expectation in stage.expects]
        verifier = parts[0] if len(parts) == 1 else AllOf(parts)
        return await verifier.verify(episode)

    async def _broken(self, error: RunError, stage: Stage, number: int) -> AttemptResult:
        """The attempt that the model failed: for good, or to be tried again."""
        cause = error.__cause__
        cause = cause if isinstance(cause, ModelError) else ModelError(str(error))
        is_final = _is_final(cause)
        episode = error.episode
        if isinstance(episode, Episode):
            await self._keep(episode, stage, number, is_last=is_final)
        return AttemptResult(episodes=tuple(self._kept), is_finished=is_final, error=cause)


def _is_final(error: ModelError) -> bool:
    """Whether asking the same again would fail again: a prompt that is too long, for one."""
    if isinstance(error, ModelStatusError):
        return error.status in {400, 413, 422}
    return isinstance(error, ModelResponseError)
