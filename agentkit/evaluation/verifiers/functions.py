"""Any callable as a verifier."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from agentkit.episodes import Episode, Evidence, Verdict
from agentkit.evaluation.verifiers.answers import answer_turn
from agentkit.evaluation.verifiers.verdicts import faulty, judged, shown
from agentkit.tools.invocation import run_in_daemon_thread

Judgement: TypeAlias = bool | float | Verdict
"""What a function may say: passed or not, a score from 0 to 1, or a whole verdict."""


class FunctionVerifier:
    """Judges by a function.

    A function that is not ``async`` runs in a thread, so that a slow one holds up no other
    episode. A number is a score; the episode passes when it is at least ``passes_at``.

    Args:
        function: Gets the episode; sync or async. What it raises, the verifier raises:
            ``guarded`` makes a verdict of it.
        name: The verifier's name; that of the function when left out.
        passes_at: The score that passes.

    Example:
        >>> import asyncio
        >>> short = FunctionVerifier(lambda episode: len(episode.output) < 20, name="short")
        >>> episode = Episode(episode_id="1", request="6 * 12?", output="72")
        >>> asyncio.run(short.verify(episode)).passed
        True
    """

    def __init__(
        self,
        function: Callable[[Episode], Judgement | Awaitable[Judgement]],
        *,
        name: str = "",
        passes_at: float = 1.0,
    ) -> None:
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self._function = function
        self._passes_at = passes_at

    async def verify(self, episode: Episode) -> Verdict:
        """What the function says."""
        if inspect.iscoroutinefunction(self._function):
            judgement = await self._function(episode)
        else:
            judgement = await run_in_daemon_thread(lambda: self._function(episode))
            if inspect.isawaitable(judgement):
                judgement = await judgement
        return self._verdict(judgement, episode)

    def _verdict(self, judgement: object, episode: Episode) -> Verdict:
        if isinstance(judgement, Verdict):
            return judgement
        if not isinstance(judgement, bool | int | float) or not 0 <= judgement <= 1:
            reason = (
                f"{self.name} gave {shown(judgement)}; return True or False, a score from 0 to 1, "
                "or a Verdict"
            )
            return faulty(self.name, "checker_error", reason)
        score = float(judgement)
        if score >= self._passes_at:
            return judged(self.name, (), score=score)
        message = f"{self.name} gave the score {score:g}, and {self._passes_at:g} passes"
        finding = Evidence(kind="other", message=message, turn=answer_turn(episode))
        return judged(self.name, [finding], score=score)
