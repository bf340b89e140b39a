"""The evolution stream: better words from episodes in which everything was right (ToolDNA).

In training the policy writes ``<description>`` blocks into its answers, and those of perfect
rollouts are taken (algorithm 1, lines 8 to 14). A policy that serves users writes no such blocks,
so at runtime a proposer model is asked with the perfect episodes of a tool. Both sources go
through the same reading.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from agentkit.episodes import Episode
from agentkit.evolution.proposals.asking import Asked, Asking, ask_each
from agentkit.evolution.proposals.blocks import OPENING
from agentkit.evolution.proposals.perfection import is_perfect
from agentkit.evolution.proposals.prompting import PROPOSER_SETTINGS, Prompt, clipped, shown
from agentkit.evolution.proposals.proposer import Observations, Suggestion
from agentkit.evolution.proposals.reading import Question, read_answer
from agentkit.library.events import Author
from agentkit.models.base import ChatModel, ModelSettings

_MOST_CALLS = 12


class EvolutionStream:
    """Suggests changes from perfect episodes only.

    Args:
        model: Is asked with the perfect episodes of each tool; without one only blocks that the
            episodes hold themselves are read.
        prompt: What it is asked with; the shipped ``evolution_v1`` when left out.
        most_episodes: Episodes that it is shown of a tool, the newest.
        least_episodes: Perfect episodes that a tool needs before a model is asked about it.
        most_tools: Tools that it is asked about in one round.
        settings: How it generates.
        structured: As for ``FeedbackStream``.

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

    def __init__(
        self,
        model: ChatModel | None = None,
        *,
        prompt: Prompt | None = None,
        most_episodes: int = 6,
        least_episodes: int = 2,
        most_tools: int = 20,
        settings: ModelSettings = PROPOSER_SETTINGS,
        structured: bool = False,
    ) -> None:
        self._asking = None
        if model is not None:
            self._asking = Asking(
                model=model,
                prompt=prompt or Prompt.shipped("evolution_v1"),
                settings=settings,
                structured=structured,
            )
        self._most_episodes = most_episodes
        self._least_episodes = least_episodes
        self._most_tools = most_tools

    @property
    def name(self) -> str:
        """``evolution``, with the model that is asked."""
        return "evolution" if self._asking is None else f"evolution:{self._asking.model.name}"

    async def propose(self, observations: Observations) -> Sequence[Suggestion]:
        """The blocks of perfect episodes, then what the model answers about each tool."""
        perfect = [episode for episode in observations.episodes if is_perfect(episode)]
        found = [one for episode in perfect for one in _own_blocks(episode, observations)]
        if self._asking is None:
            return found
        tools = self._tools(perfect, observations)
        questions = (self._question(tool, perfect) for tool in tools)
        return await ask_each(questions, observations.library, self._asking, before=found)

    def _question(self, tool: str, perfect: Iterable[Episode]) -> Asked:
        used = [episode for episode in perfect if any(c.name == tool for c in episode.calls)]
        newest = tuple(used[-self._most_episodes :])
        return Asked(
            tool=tool,
            stream="evolution",
            episodes=newest,
            shown=_shown(newest, tool),
            reason=f"{len(used)} episodes with {tool} were perfect",
        )

    def _tools(self, perfect: Iterable[Episode], observations: Observations) -> list[str]:
        """The tools to ask about, in the order wanted, else the most used first."""
        counts = Counter(name for e in perfect for name in {call.name for call in e.calls})
        known = {name: count for name, count in counts.items() if name in observations.library}
        order = observations.tools or tuple(sorted(known, key=lambda name: (-known[name], name)))
        enough = [name for name in order if known.get(name, 0) >= self._least_episodes]
        return enough[: self._most_tools]


def _own_blocks(episode: Episode, observations: Observations) -> Iterable[Suggestion]:
    """Blocks that the policy wrote itself, about tools that it called or may look at."""
    question = Question(
        library=observations.library,
        stream="evolution",
        author=Author(kind="model", name=episode.model or "policy"),
        tools=frozenset(observations.tools),
        reason=f"written by the policy in the perfect episode {episode.episode_id}",
        evidence=(episode.episode_id,),
    )
    texts = [turn.message.text for turn in episode.turns if OPENING in turn.message.text]
    return [one for text in texts for one in read_answer(text, question)]


def _shown(episodes: Iterable[Episode], tool: str) -> str:
    """Request, calls and results, as far as they are about the tool."""
    parts = []
    for number, episode in enumerate(episodes, start=1):
        lines = [f"## Request {number}", clipped(shown(episode.request))]
        results = {result.call_id: result for result in episode.results}
        for call in [call for call in episode.calls if call.name == tool][:_MOST_CALLS]:
            result = results.get(call.call_id)
            lines.append(f"call: {shown(dict(call.arguments))}")
            lines.append(f"result: {shown(None if result is None else result.value)}")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)
