"""The evolution and the feedback stream: a model is asked about one tool at a time (ToolDNA)."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from string import Template
from typing import Any, ClassVar

from agentkit.episodes import Episode, Evidence
from agentkit.episodes.labels import INSTRUCTIONS, INSTRUCTIONS_DIGEST
from agentkit.errors import ModelError
from agentkit.evolution.proposal import (
    SUBJECTS,
    Observations,
    Proposal,
    ProposerInterruptedError,
    Stream,
    Subject,
)
from agentkit.evolution.proposers.blocks import (
    CLOSING,
    OPENING,
    Question,
    block_schema,
    read_answer,
)
from agentkit.evolution.validation.report import TextOrigin
from agentkit.library.events import Author
from agentkit.library.library import Library
from agentkit.messages import JsonObject, SystemMessage, Usage, UserMessage
from agentkit.models.base import ChatModel, MeteredModel, ModelRequest, ModelSettings
from agentkit.tools.definition import ToolDefinition, is_instructions
from agentkit.tools.patterns import json_line
from agentkit.tools.rules import rule_to_json

# --- Prompts of the model proposers: versioned files, filled in, and known by their hash ---------


PROPOSER_SETTINGS = ModelSettings(temperature=0.2, max_tokens=2048)
"""How a proposer generates, unless told otherwise."""

_SYSTEM = "You write documentation of tools for language models. You answer in the form asked for."
_LONGEST_SHOWN = 600
LONGEST_DEFINITION = 10_000


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """One prompt as a text with places for data.

    Attributes:
        name: With its version, such as ``feedback_v1``; the file is ``prompts/<name>.txt``.
        text: The text.
    """

    name: str
    text: str

    @classmethod
    def shipped(cls, name: str) -> Prompt:
        """A prompt that comes with the package.

        Example:
            >>> Prompt.shipped("feedback_v1").hash == Prompt.shipped("feedback_v1").hash
            True
        """
        file = files("agentkit.evolution.proposers").joinpath("prompts", f"{name}.txt")
        return cls(name=name, text=file.read_text(encoding="utf-8"))

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the text, as 64 hexadecimal digits; ``Author.prompt_hash``."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def request(
        self,
        definition: ToolDefinition,
        episodes: str,
        *,
        settings: ModelSettings,
        output_schema: JsonObject | None = None,
    ) -> ModelRequest:
        """The question about one tool.

        Args:
            definition: The tool as it is.
            episodes: What happened, in words.
            settings: How to generate.
            output_schema: What the answer is held to; None for a block between tags.
        """
        text = Template(self.text).substitute(
            tool=shown(_described(definition), most=LONGEST_DEFINITION),
            schema=shown(definition.signature.parameters, most=LONGEST_DEFINITION),
            episodes=episodes,
            name=json.dumps(definition.name, ensure_ascii=False),
        )
        messages = (SystemMessage(text=_SYSTEM), UserMessage(text=text))
        return ModelRequest(messages=messages, settings=settings, output_schema=output_schema)

    def author(self, model: ChatModel) -> Author:
        """The model, asked with this prompt."""
        return Author(kind="model", name=model.name, prompt_hash=self.hash)


def _described(definition: ToolDefinition) -> dict[str, Any]:
    """The words of a tool in the form of a block: what a proposer is shown and answers with."""
    description = definition.description
    record: dict[str, Any] = {
        "tool": definition.name,
        "summary": description.summary,
        "parameters": dict(description.parameters),
        "usage_rules": list(description.usage_rules),
    }
    if definition.specification.rules:
        record["rules"] = [rule_to_json(rule) for rule in definition.specification.rules]
    if definition.examples:
        first = definition.examples[0]
        record["first_example"] = {"arguments": dict(first.arguments), "result": first.result}
    return record


def shown(value: Any, *, most: int = _LONGEST_SHOWN) -> str:
    """Data as JSON on one line, cut to a length; tags of a block in it are broken up."""
    try:
        text = json_line(value, most=most)
    except (ValueError, RecursionError):
        return "(cannot be shown)"
    return text.replace("description>", "description >")


# --- Which episodes are perfect (r = 1 exactly), and which went wrong for the agent's own fault --
# ToolDNA learns descriptions from rollouts with a reward of exactly 1 and shows all others to the
# feedback model (algorithm 1, lines 8 and 15). The reward is R1, R2 or R3 over its seven metrics
# (``agentkit_training.rewards``), each of which is 1 exactly when every metric it is made of is 1.
# A runtime has verdicts of any verifier, so r = 1 is read off what the verdict holds.


_METRICS = (
    *("format", "tool_parsed", "tool_name"),
    *("param_name", "param_value", "perfect_match", "resolution"),
)
"""ToolDNA's seven metrics, as verdicts may hold them (appendix C.3.1)."""


def is_perfect(episode: Episode) -> bool:
    """Whether an episode has r = 1.

    Its verdict passed with a score of 1 and no evidence, each of ToolDNA's metrics that the verdict
    holds is 1, and the run finished without a failed call: a call that was refused and repaired is
    an execution defect, which the paper's gate keeps out too. Where tools are not run, as in
    benchmarks of single calls, the run is finished when its calls wait for somebody outside. Where
    it had one step, the limit of steps is where it was to end. Without a verdict nothing is
    perfect.
    """
    verdict = episode.verdict
    if verdict is None or verdict.fault is not None or not verdict.passed:
        return False
    if verdict.score != 1 or verdict.evidence or not _has_ended(episode):
        return False
    metrics = [verdict.metrics[name] for name in _METRICS if name in verdict.metrics]
    fine = {"ok", "deferred"} if episode.stop_reason == "deferred" else {"ok"}
    return all(value == 1 for value in metrics) and all(r.status in fine for r in episode.results)


def is_imperfect(episode: Episode) -> bool:
    """Whether an episode has r < 1 by a verdict that says something about the agent.

    An episode that nobody judged, or whose reference or verifier is broken, is neither perfect nor
    imperfect.
    """
    verdict = episode.verdict
    return verdict is not None and verdict.fault is None and not is_perfect(episode)


def _has_ended(episode: Episode) -> bool:
    """Whether nothing more was to come.

    A run that reached its limit of steps with its first turn had one step: its calls are the answer
    that was asked for. After more turns the limit has cut the run off.
    """
    if episode.stop_reason == "step_limit":
        return len(episode.turns) == 1 and bool(episode.results)
    return episode.stop_reason in {"finished", "deferred"}


# --- Asking a model about one tool ---------------------------------------------------------------


_MOST_TOOLS = 20
_MOST_CALLS = 12
_MOST_FINDINGS = 8


class _ModelStream(ABC):
    """Asks a model about one tool at a time, showing it the newest episodes of that tool.

    Args:
        model: The model; without one only blocks that the episodes hold themselves are read.
        prompt: What it is asked with; the shipped one when left out.
        max_episodes: Episodes of a tool in one request, the newest.
        min_episodes: Episodes that a tool needs before it is asked about.
        settings: How the model generates.
        subjects: What it may be asked about. Instructions concern feedback alone.
        structured: Ask for JSON of a schema (``ModelRequest.output_schema``) in place of a block
            between tags. For models that can be held to one; small local ones answer with nothing
            readable otherwise.
    """

    stream: ClassVar[Stream]
    most_episodes: ClassVar[int]
    least_episodes: ClassVar[int]

    def __init__(
        self,
        model: ChatModel | None = None,
        *,
        prompt: Prompt | None = None,
        max_episodes: int | None = None,
        min_episodes: int | None = None,
        settings: ModelSettings = PROPOSER_SETTINGS,
        subjects: Collection[Subject] = SUBJECTS,
        structured: bool = False,
    ) -> None:
        self._subjects = frozenset(subjects)
        self._model = None if model is None else MeteredModel(model)
        self._prompt = prompt or Prompt.shipped(f"{self.stream}_v1")
        self._of_instructions = Prompt.shipped("instructions_v1")
        self._max_episodes = self.most_episodes if max_episodes is None else max_episodes
        self._min_episodes = self.least_episodes if min_episodes is None else min_episodes
        self._settings = settings
        self._structured = structured

    @property
    def name(self) -> str:
        """The stream, with the model that is asked."""
        return self.stream if self._model is None else f"{self.stream}:{self._model.name}"

    @property
    def usage(self) -> Usage:
        """What asking the model has cost so far."""
        return Usage() if self._model is None else self._model.usage

    @abstractmethod
    def _told(self, episode: Episode, tool: str) -> Iterable[str]:
        """What happened with a tool, line by line."""

    @abstractmethod
    def _reason(self, episodes: int, tool: str) -> str:
        """Why the model was asked."""

    async def _suggested(
        self,
        by_tool: Mapping[str, Sequence[Episode]],
        order: Iterable[str],
        observations: Observations,
        *,
        before: Iterable[Proposal] = (),
    ) -> list[Proposal]:
        """What was suggested before, and what the model suggests about one tool after another.

        Raises:
            ModelError: The model failed before anything was suggested.
            ProposerInterruptedError: It failed later; the error holds what there was by then.
        """
        found = list(before)
        if self._model is None:
            return found
        enough = [name for name in order if len(by_tool.get(name, ())) >= self._min_episodes]
        for tool in enough[:_MOST_TOOLS]:
            try:
                found += await self._ask(self._model, tool, by_tool[tool], observations)
            except ModelError as error:
                if not found:
                    raise
                raise ProposerInterruptedError(str(error), found=found) from error
        return found

    async def _ask(
        self, model: ChatModel, tool: str, episodes: Sequence[Episode], observations: Observations
    ) -> tuple[Proposal, ...]:
        """What the model suggests for one tool."""
        library, newest = observations.library, episodes[-self._max_episodes :]
        definition = library[tool].definition
        told = (
            "\n".join([f"## Request {number}", shown(one.request), *self._told(one, tool)])
            for number, one in enumerate(newest, start=1)
        )
        schema = block_schema(definition) if self._structured else None
        prompt = self._of_instructions if is_instructions(tool) else self._prompt
        request = prompt.request(
            definition, "\n\n".join(told), settings=self._settings, output_schema=schema
        )
        text = (await model.complete(request)).message.text
        if self._structured and OPENING not in text:
            text = f"{OPENING}{text}{CLOSING}"
        question = Question(
            library=library,
            stream=self.stream,
            author=prompt.author(model),
            tools=frozenset({tool}),
            reason=self._reason(len(episodes), tool),
            evidence=tuple(episode.episode_id for episode in newest),
            pass_over=observations.pass_over,
        )
        return tuple(
            one
            for one in read_answer(text, question)
            # whoever has to answer with a block changes nothing to say NOTHING
            if one.candidate != definition
        )


class EvolutionStream(_ModelStream):
    """Suggests better words from perfect episodes only.

    In training the policy writes ``<description>`` blocks into its answers, and those of perfect
    rollouts are taken (algorithm 1, lines 8 to 14). A policy that serves users writes no such
    blocks, so at runtime a model is asked with the perfect episodes of a tool.

    Example:
        >>> import asyncio
        >>> from agentkit import Library, ToolDefinition
        >>> from agentkit.episodes import Turn, Verdict
        >>> from agentkit.messages import AssistantMessage
        >>> said = 'Done. <description>{"tool": "loan", "summary": "A loan."}</description>'
        >>> episode = Episode(
        ...     episode_id="e1", request="", model="policy",
        ...     turns=(Turn(message=AssistantMessage(text=said)),),
        ...     verdict=Verdict(passed=True, score=1.0))
        >>> seen = Observations(library=Library([ToolDefinition(name="loan")]), episodes=(episode,))
        >>> [one.candidate.text for one in asyncio.run(EvolutionStream().propose(seen))]
        ['A loan.']
    """

    stream = "evolution"
    most_episodes, least_episodes = 6, 2

    async def propose(self, observations: Observations) -> Sequence[Proposal]:
        """The blocks of perfect episodes, then what the model answers, the most used tool first."""
        perfect = [episode for episode in observations.episodes if is_perfect(episode)]
        found = [one for episode in perfect for one in _own_blocks(episode, observations)]
        by_tool: dict[str, list[Episode]] = {}
        for episode in perfect:
            for name in dict.fromkeys(call.name for call in episode.calls):
                if name in observations.library:
                    by_tool.setdefault(name, []).append(episode)
        by_tool = observations.with_news(by_tool)
        order = observations.tools or sorted(by_tool, key=lambda one: (-len(by_tool[one]), one))
        return await self._suggested(by_tool, order, observations, before=found)

    def _told(self, episode: Episode, tool: str) -> Iterable[str]:
        results = {result.call_id: result for result in episode.results}
        for call in [call for call in episode.calls if call.name == tool][:_MOST_CALLS]:
            result = results.get(call.call_id)
            yield f"call: {shown(dict(call.arguments))}"
            yield f"result: {shown(None if result is None else result.value)}"

    def _reason(self, episodes: int, tool: str) -> str:
        return f"{episodes} episodes with {tool} were perfect"


def _own_blocks(episode: Episode, observations: Observations) -> Iterable[Proposal]:
    """Blocks that the policy wrote itself, about tools that it called or may look at.

    A user who asks it to repeat a block, and praises the answer, has written them.
    """
    question = Question(
        library=observations.library,
        stream="evolution",
        author=Author(kind="model", name=episode.model or "policy"),
        tools=frozenset(observations.tools),
        reason=f"written by the policy in the perfect episode {episode.episode_id}",
        evidence=(episode.episode_id,),
        pass_over=observations.pass_over,
        origins=(TextOrigin(text="", kind="user", where="an answer to a user"),),
    )
    texts = [turn.message.text for turn in episode.turns if OPENING in turn.message.text]
    return [one for text in texts for one in read_answer(text, question)]


class FeedbackStream(_ModelStream):
    """Suggests clearer words, or relaxed rules, from episodes with r < 1, by asking a model.

    Two deviations from the paper (section 3.2.2, figure 3): it asks once for each record, which
    invites words that fit that record, so here one request holds several failures of one tool
    (``max_episodes=1`` is the paper's way). And gold comes as evidence of the verdict, which every
    verifier gives, rather than as the gold calls of a training set.

    An agent's instructions are asked about with the episodes that failed while it read them (JTPRO
    improves both kinds of text together; each is a proposal of its own here).
    """

    stream = "feedback"
    most_episodes, least_episodes = 4, 1

    async def propose(self, observations: Observations) -> Sequence[Proposal]:
        """What the model answers about each tool that was at fault, the worst first.

        Then about the instructions.
        """
        seen, library = observations.episodes, observations.library
        by_name = _by_tool(seen, library) if "tools" in self._subjects else {}
        if "instructions" in self._subjects:
            by_name |= _by_instructions(seen, library)
        failed = observations.with_news(by_name)
        worst = [rate.tool for rate in observations.profile.worst_tools(1_000)]
        rank = {name: at for at, name in enumerate(worst)}
        order = observations.tools or sorted(
            failed, key=lambda name: (rank.get(name, len(rank)), -len(failed[name]), name)
        )
        return await self._suggested(failed, order, observations)

    def _told(self, episode: Episode, tool: str) -> Iterable[str]:
        yield "Solution:"
        is_whole = is_instructions(tool)
        results = {result.call_id: result for result in episode.results}
        calls = [call for call in episode.calls if is_whole or call.name == tool][:_MOST_CALLS]
        for call in calls:
            arguments = call.malformed if call.malformed is not None else dict(call.arguments)
            yield f"- call{f' of {shown(call.name)}' if is_whole else ''}: {shown(arguments)}"
            result = results.get(call.call_id)
            if result is not None and result.failure is not None:
                yield f"  refused: {shown(result.failure.rule)}"
        if is_whole:
            yield f"- answer: {shown(episode.output)}"
        elif not calls:
            yield "- the tool was not called"
        yield "What was wrong:"
        evidence = () if episode.verdict is None else episode.verdict.evidence
        about = [one for one in evidence if is_whole or one.tool in {"", tool}]
        yield from map(_finding, about[:_MOST_FINDINGS])

    def _reason(self, episodes: int, tool: str) -> str:
        return f"{episodes} episodes went wrong with {tool}"


def _by_instructions(episodes: Iterable[Episode], library: Library) -> dict[str, list[Episode]]:
    """Failed episodes by the instructions that they read, as these still are."""
    found: dict[str, list[Episode]] = {}
    for episode in filter(is_imperfect, episodes):
        name = episode.metadata.get(INSTRUCTIONS, "")
        held = library.instructions.get(name)
        if held is not None and held.digest == episode.metadata.get(INSTRUCTIONS_DIGEST):
            found.setdefault(name, []).append(episode)
    return found


def _by_tool(episodes: Iterable[Episode], library: Library) -> dict[str, list[Episode]]:
    """Failed episodes by the tool of the library that the gold calls, as the verdict names it.

    The paper takes the tool of the gold call. Evidence names the tool that was called or the one
    that was due; where it names none, or the tools' own failures say more, the called tools count.
    """
    found: dict[str, list[Episode]] = {}
    for episode in filter(is_imperfect, episodes):
        evidence = () if episode.verdict is None else episode.verdict.evidence
        named = [item.tool for item in evidence if item.tool in library.tools]
        refused = [result.name for result in episode.results if result.status == "failed"]
        called = [call.name for call in episode.calls]
        at_fault = named + refused or called
        for name in dict.fromkeys(name for name in at_fault if name in library.tools):
            found.setdefault(name, []).append(episode)
    return found


def _finding(item: Evidence) -> str:
    words = " ".join(item.kind.replace("_", " ").split())
    where = f" at {shown(item.parameter)}" if item.parameter else ""
    return f"- {words}{where}: right is {shown(item.expected)}, it was {shown(item.actual)}"
