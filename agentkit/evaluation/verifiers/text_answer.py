"""A text in the final answer."""

from __future__ import annotations

import unicodedata

from agentkit.episodes import Episode, Evidence, Verdict
from agentkit.evaluation.expectations import TextAnswer
from agentkit.evaluation.verifiers.answers import answer_text, answer_turn, without_answer
from agentkit.evaluation.verifiers.verdicts import clipped, faulty, judged, shown


class TextAnswerVerifier:
    """Passes when the final answer is the expected text, or holds it.

    Case and surrounding space do not count, nor whether an accented letter is written as one
    character or as two (Unicode NFC). Letters of another script that look alike are different.

    Args:
        expected: The text.
    """

    name = "text_answer"

    def __init__(self, expected: TextAnswer) -> None:
        self._expected = expected

    async def verify(self, episode: Episode) -> Verdict:
        """Compare the final answer with the text."""
        if problem := _gold_problem(self._expected.text, self._expected.match):
            return faulty(self.name, "gold_error", problem)
        answer = answer_text(episode)
        if answer is None:
            return without_answer(self.name, episode)
        wanted, given = _plain(self._expected.text), _plain(answer)
        holds = self._expected.match == "contains"
        if wanted in given if holds else wanted == given:
            return judged(self.name, ())
        relation = "does not contain" if holds else "is not"
        wrong = Evidence(
            kind="wrong_answer",
            message=f"the answer {shown(answer)} {relation} {shown(self._expected.text)}",
            turn=answer_turn(episode),
            expected=self._expected.text,
            actual=clipped(answer),
        )
        return judged(self.name, [wrong])


def _gold_problem(text: object, match: object) -> str:
    if not isinstance(text, str) or not text.strip():
        return f"the expected text is {shown(text)}, which no answer can be held against"
    if match not in ("equal", "contains"):
        return f"the match is {shown(match)}, expected 'equal' or 'contains'"
    return ""


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).strip().casefold())
