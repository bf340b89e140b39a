"""Whether an episode calls anything at all."""

from __future__ import annotations

from agentkit.episodes import Episode, Evidence, Verdict
from agentkit.evaluation.verifiers.made_calls import MadeCalls
from agentkit.evaluation.verifiers.verdicts import judged


class AnyCallVerifier:
    """Passes when the episode makes a call whose arguments can be read (BFCL's relevance).

    A call that a learned rule refused is none.
    """

    name = "any_call"

    async def verify(self, episode: Episode) -> Verdict:
        """Look for a call that is more than unreadable text, and was not refused by a rule."""
        made = MadeCalls.of(episode)
        readable = {at for at, call in enumerate(made.calls) if call.malformed is None}
        if readable - made.refused:
            return judged(self.name, ())
        found = [
            Evidence(
                kind="malformed_arguments",
                message=f"{call.name} was called with arguments that are not a JSON object",
                call_id=call.call_id,
                tool=call.name,
                actual=call.malformed,
            )
            for at, call in enumerate(made.calls)
            if at not in readable
        ]
        found += made.refusals(readable)
        nothing = Evidence(kind="missing_call", message="nothing was called; a call was expected")
        return judged(self.name, [*made.placed(found), *made.unanswered()] or [nothing])


class NoCallVerifier:
    """Passes when the episode answers without a call (BFCL's irrelevance).

    A call whose arguments can not be read counts as a call, since the model tried. BFCL's checker
    takes output that it can not decode for an abstention, and lets it pass.
    """

    name = "no_call"

    async def verify(self, episode: Episode) -> Verdict:
        """Look for calls."""
        made = MadeCalls.of(episode)
        found = [
            Evidence(
                kind="unexpected_call",
                message=f"{call.name} was called; no call was expected",
                call_id=call.call_id,
                tool=call.name,
            )
            for call in made.calls
        ]
        return judged(self.name, [*made.placed(found), *made.unanswered()])
