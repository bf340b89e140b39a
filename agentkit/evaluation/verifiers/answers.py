"""The final answer of an episode as text."""

from __future__ import annotations

import json
from typing import Any

from agentkit.episodes import Episode, Evidence, Verdict
from agentkit.evaluation.verifiers.verdicts import judged, shown


def answer_text(episode: Episode) -> str | None:
    """The final answer: text as it is, structured data as JSON; None when there is none."""
    output: Any = episode.output
    if output is None or isinstance(output, str):
        return output if output and output.strip() else None
    try:
        return json.dumps(output, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return shown(output)


def answer_turn(episode: Episode) -> int | None:
    """The turn that gave the final answer."""
    return len(episode.turns) - 1 if episode.turns else None


def without_answer(verifier: str, episode: Episode) -> Verdict:
    """The verdict about an episode that has no final answer."""
    why = f"the run ended by {episode.stop_reason!r}"
    message = f"there is no final answer to judge; {why}"
    missing = Evidence(kind="missing_answer", message=message, turn=answer_turn(episode))
    return judged(verifier, [missing])
