"""The feedback stream: a model sees what went wrong, what was right and the current text (ToolDNA).

It may make the text clearer, or relax a rule that is stricter than the tool. Two deviations from
the paper (section 3.3, figure 3):

* The paper asks once for each record. One record invites words that fit that record, so here one
  request holds several failures of one tool; ``most_episodes=1`` is the paper's way.
* Gold comes as evidence of the verdict (what was expected, what was there), which every verifier
  gives, rather than as the gold calls of a training set. What the model writes is held against
  these values: a text that repeats one is refused (``generalising``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agentkit.episodes import Episode, Evidence
from agentkit.evolution.proposals.asking import Asked, Asking, ask_each
from agentkit.evolution.proposals.perfection import is_imperfect
from agentkit.evolution.proposals.prompting import PROPOSER_SETTINGS, Prompt, clipped, shown
from agentkit.evolution.proposals.proposer import Observations, Suggestion
from agentkit.library.library import Library
from agentkit.models.base import ChatModel, ModelSettings

_MOST_CALLS = 8
_MOST_FINDINGS = 8


class FeedbackStream:
    """Suggests changes from episodes with r < 1, by asking a model.

    Args:
        model: The feedback model.
        prompt: What it is asked with; the shipped ``feedback_v1`` when left out.
        most_episodes: Failed episodes of a tool in one request, the newest.
        least_episodes: Failed episodes that a tool needs before it is asked about.
        most_tools: Tools that it is asked about in one round.
        settings: How it generates.
        structured: Ask for JSON of a schema (``ModelRequest.output_schema``) in place of a block
            between tags. For models that can be held to one; small local ones answer with nothing
            readable otherwise.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        prompt: Prompt | None = None,
        most_episodes: int = 4,
        least_episodes: int = 1,
        most_tools: int = 20,
        settings: ModelSettings = PROPOSER_SETTINGS,
        structured: bool = False,
    ) -> None:
        self._asking = Asking(
            model=model,
            prompt=prompt or Prompt.shipped("feedback_v1"),
            settings=settings,
            structured=structured,
        )
        self._most_episodes = most_episodes
        self._least_episodes = least_episodes
        self._most_tools = most_tools

    @property
    def name(self) -> str:
        """``feedback``, with the model that is asked."""
        return f"feedback:{self._asking.model.name}"

    async def propose(self, observations: Observations) -> Sequence[Suggestion]:
        """What the model answers about each tool that was at fault, the worst first."""
        failed = _by_tool(observations.episodes, observations.library)
        tools = self._tools(failed, observations)
        questions = (self._question(tool, failed[tool]) for tool in tools)
        return await ask_each(questions, observations.library, self._asking)

    def _question(self, tool: str, failed: Sequence[Episode]) -> Asked:
        newest = tuple(failed[-self._most_episodes :])
        return Asked(
            tool=tool,
            stream="feedback",
            episodes=newest,
            shown=_shown(newest, tool),
            reason=f"{len(failed)} episodes went wrong with {tool}",
        )

    def _tools(
        self, failed: Mapping[str, Sequence[Episode]], observations: Observations
    ) -> list[str]:
        worst = [rate.tool for rate in observations.profile.worst_tools(1_000)]
        rank = {name: at for at, name in enumerate(worst)}
        order = observations.tools or tuple(
            sorted(failed, key=lambda name: (rank.get(name, len(rank)), -len(failed[name]), name))
        )
        enough = [name for name in order if len(failed.get(name, ())) >= self._least_episodes]
        return enough[: self._most_tools]


def _by_tool(episodes: Iterable[Episode], library: Library) -> Mapping[str, list[Episode]]:
    """Failed episodes by the tool of the library that the gold calls, as the verdict names it.

    The paper takes the tool of the gold call. Evidence names the tool that was called or the one
    that was due; where it names none, or the tools' own failures say more, the called tools count.
    """
    found: dict[str, list[Episode]] = {}
    for episode in filter(is_imperfect, episodes):
        evidence = () if episode.verdict is None else episode.verdict.evidence
        named = [item.tool for item in evidence if item.tool in library]
        refused = [result.name for result in episode.results if result.status == "failed"]
        called = [call.name for call in episode.calls]
        at_fault = named + refused or called
        for name in dict.fromkeys(name for name in at_fault if name in library):
            found.setdefault(name, []).append(episode)
    return found


def _shown(episodes: Iterable[Episode], tool: str) -> str:
    """Request, solution and what was wrong with it, as far as they are about the tool."""
    parts = []
    for number, episode in enumerate(episodes, start=1):
        lines = [f"## Request {number}", clipped(shown(episode.request)), "Solution:"]
        lines += _solution(episode, tool)
        evidence = () if episode.verdict is None else episode.verdict.evidence
        about = [item for item in evidence if item.tool in {"", tool}]
        lines += ["What was wrong:", *map(_finding, about[:_MOST_FINDINGS])]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _solution(episode: Episode, tool: str) -> list[str]:
    results = {result.call_id: result for result in episode.results}
    lines = []
    for call in [call for call in episode.calls if call.name == tool][:_MOST_CALLS]:
        arguments = call.malformed if call.malformed is not None else dict(call.arguments)
        lines.append(f"- call: {shown(arguments)}")
        result = results.get(call.call_id)
        if result is not None and result.failure is not None:
            lines.append(f"  refused: {shown(result.failure.rule)}")
    return lines or ["- the tool was not called"]


def _finding(item: Evidence) -> str:
    words = item.kind.replace("_", " ")
    where = f" at {item.parameter}" if item.parameter else ""
    return f"- {words}{where}: right is {shown(item.expected)}, it was {shown(item.actual)}"
