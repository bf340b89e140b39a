"""From episodes to what a policy is trained on: tokens, which of them it wrote, and the reward."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agentkit.episodes import Episode, FailureLabel, Turn
from agentkit.evaluation.settings import EvaluationLabels
from agentkit.messages import TokenIds


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenSequence:
    """A prompt and everything after it, as one training sequence.

    Attributes:
        prompt: What was read before the first answer.
        completion: Answers, and between them what tools and users said.
        written: For each token of ``completion`` whether the policy wrote it; only these bear loss.
        logprobs: For each token of ``completion`` its log-probability when it was written; 0 for
            tokens that the policy did not write.
    """

    prompt: tuple[int, ...]
    completion: tuple[int, ...]
    written: tuple[bool, ...]
    logprobs: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.prompt) + len(self.completion)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollout:
    """One attempt at a task, as training sees it.

    Attributes:
        task_id: The task.
        attempt: Which of the group's attempts it is, from 0.
        episodes: What happened, one for each thing the user said, with verdicts and diagnoses.
        sequences: The tokens. One as long as each prompt goes on from the one before; a prompt
            that was written anew begins another.
        library_version: The version that its prompts were rendered from.
        reward: Its reward.
        reward_parts: What the reward is made of, by name.
        reward_notes: What else the reward function recorded, by name; it does not count.
        weight: What its advantage is multiplied with (SEAL, Eq. 12).
        fault: Why it must not be trained on; empty for any other.
    """

    task_id: str
    attempt: int
    episodes: tuple[Episode, ...]
    sequences: tuple[TokenSequence, ...]
    library_version: int
    reward: float = 0.0
    reward_parts: Mapping[str, float] = field(default_factory=dict)
    reward_notes: Mapping[str, float] = field(default_factory=dict)
    weight: float = 1.0
    fault: str = ""

    @property
    def labels(self) -> tuple[FailureLabel, ...]:
        """The failure labels of its turns, in order (SEAL, Eq. 5)."""
        return tuple(
            turn.label
            for episode in self.episodes
            if episode.diagnosis is not None
            for turn in episode.diagnosis.turns
        )

    @property
    def passed(self) -> bool:
        """Whether all that was judged passed, and the user came to say everything."""
        labels = EvaluationLabels.of(self.episodes[-1]) if self.episodes else None
        if labels is not None and len(self.episodes) < labels.user_turns:
            return False
        verdicts = [one.verdict for one in self.episodes if one.verdict is not None]
        return bool(verdicts) and all(verdict.passed for verdict in verdicts)


def token_sequences(episodes: Iterable[Episode]) -> tuple[TokenSequence, ...]:
    """The training sequences of one conversation, from the tokens that its turns recorded.

    Where calls were refined before they ran, each proposal is a sequence too: all of them were
    written by the policy, and the last would not be what it is without the others.

    Example:
        >>> from agentkit.episodes import Episode, Turn
        >>> from agentkit.messages import AssistantMessage, TokenIds
        >>> def turn(prompt, completion):
        ...     tokens = TokenIds(prompt=prompt, completion=completion, logprobs=(-1.0,))
        ...     return Turn(message=AssistantMessage(text=""), tokens=tokens)
        >>> turns = (turn((1, 2), (3,)), turn((1, 2, 3, 4), (5,)))
        >>> token_sequences([Episode(episode_id="e", request="", turns=turns)])
        (TokenSequence(prompt=(1, 2), completion=(3, 4, 5), written=(True, False, True), \
logprobs=(-1.0, 0.0, -1.0)),)
    """
    open_one: _Growing | None = None
    done: list[TokenSequence] = []
    for episode in episodes:
        for turn in episode.turns:
            for tokens in _written(turn):
                if open_one is None or not open_one.takes(tokens):
                    if open_one is not None:
                        done.append(open_one.finished())
                    open_one = _Growing(tokens.prompt)
                open_one.add(tokens)
    if open_one is not None:
        done.append(open_one.finished())
    return tuple(done)


def _written(turn: Turn) -> tuple[TokenIds, ...]:
    """What the policy wrote in a turn, answer by answer."""
    if turn.refine is not None and turn.refine.tokens:
        return turn.refine.tokens
    return () if turn.tokens is None else (turn.tokens,)


class _Growing:
    """A sequence that later turns may still go on from."""

    def __init__(self, prompt: Sequence[int]) -> None:
        self._prompt = tuple(prompt)
        self._ids = list(prompt)
        self._written: list[bool] = []
        self._logprobs: list[float] = []

    def takes(self, tokens: TokenIds) -> bool:
        """Whether the turn's prompt begins with all that was read and written so far."""
        return list(tokens.prompt[: len(self._ids)]) == self._ids

    def add(self, tokens: TokenIds) -> None:
        between = tokens.prompt[len(self._ids) :]
        self._ids += [*between, *tokens.completion]
        self._written += [False] * len(between) + [True] * len(tokens.completion)
        self._logprobs += [0.0] * len(between) + list(tokens.logprobs)

    def finished(self) -> TokenSequence:
        return TokenSequence(
            prompt=self._prompt,
            completion=tuple(self._ids[len(self._prompt) :]),
            written=tuple(self._written),
            logprobs=tuple(self._logprobs),
        )
