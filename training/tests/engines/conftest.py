"""What the tests of engines share: a source of rollouts that were not written by a policy."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from agentkit_training import Rollout, TokenSequence

TOKENS = 400


class Recorded:
    """A source of made-up rollouts of several turns: equal for equal steps, whoever asks.

    Groups are of several sizes, some rollouts have a fault, some two sequences, and the tokens of
    tools stand between those of the policy.
    """

    def __init__(self, *, faults=0.15, rewritten=0.15, change=lambda rollout: rollout):
        self.faults, self.rewritten, self.change = faults, rewritten, change
        self.reports = []

    def rollouts(self, step, share):
        dice = random.Random(1000 * step + share.rank)
        found = []
        for task in range(3):
            prompt = tuple(dice.randrange(TOKENS) for _ in range(dice.randint(3, 20)))
            for attempt in range(dice.randint(3, 5)):
                two = dice.random() < self.rewritten
                sequences = [sequence(dice, prompt)]
                if two:
                    sequences.append(sequence(dice, (*prompt, 7, 8)))
                rollout = Rollout(
                    task_id=f"{share.rank}-{task}",
                    attempt=attempt,
                    episodes=(),
                    sequences=tuple(sequences),
                    library_version=0,
                    reward=dice.choice([0.0, 0.25, 1.0]),
                    weight=dice.uniform(0.5, 2.0),
                    fault="the tool broke" if dice.random() < self.faults else "",
                )
                found.append(self.change(rollout))
        return found

    def finished(self, report):
        self.reports.append(report)


def sequence(dice, prompt):
    """Some tokens of the policy, some of a tool, some of the policy."""
    written = [turn % 2 == 0 for turn in range(3) for _ in range(dice.randint(1, 5))]
    return TokenSequence(
        prompt=prompt,
        completion=tuple(dice.randrange(TOKENS) for _ in written),
        written=tuple(written),
        logprobs=tuple(-dice.uniform(5.5, 6.5) if one else 0.0 for one in written),
    )


@pytest.fixture
def recorded() -> Callable[..., Recorded]:
    """Makes sources of made-up rollouts."""
    return Recorded
