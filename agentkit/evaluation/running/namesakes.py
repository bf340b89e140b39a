"""Calls of retrieved tools, judged by the names that the benchmark itself uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agentkit.episodes import Episode
from agentkit.evaluation.expectations import AllowedCalls
from agentkit.evaluation.scoring import score_allowed_calls
from agentkit.evaluation.verifiers.made_calls import MadeCalls
from agentkit.library import Library
from agentkit.tools.definition import ToolDefinition


def by_name_metrics(
    episode: Episode,
    expected: AllowedCalls,
    definitions: Iterable[ToolDefinition],
    library: Library,
) -> Mapping[str, float]:
    """``exact_by_name`` and ``right_tools_by_name`` of an episode, as ``Score`` has them.

    A catalogue made of thousands of questions holds different tools of one name. Retrieval may find
    another one than the gold tool; no model could tell.

    Args:
        episode: What was called.
        expected: The gold calls, which can be matched.
        definitions: The gold tools.
        library: The tools that were called.

    Raises:
        UsageError: A gold tool is not among the definitions, or a gold call can not be read.
    """
    calls = MadeCalls.of(episode).calls
    found = (library.get(call.name) for call in calls)
    known = {one.name: one for one in definitions}
    known |= {tool.name: tool.definition for tool in found if tool is not None}
    score = score_allowed_calls(calls, expected, known.values())
    return {
        "exact_by_name": float(score.exact_by_name),
        "right_tools_by_name": float(score.right_tools_by_name),
    }
