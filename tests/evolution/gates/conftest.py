"""Pairs, sessions and episodes for gates to look at."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import pytest

from agentkit.episodes import Episode, Verdict
from agentkit.evolution.gates import ArmScore, PairedScore


@pytest.fixture
def pairs_of() -> Callable[[str], list[PairedScore]]:
    """Pairs from a text: ``w`` the candidate alone is right, ``l`` the control alone, ``=`` both."""

    def build(text: str) -> list[PairedScore]:
        return [
            PairedScore(task=f"t{place}", control=float(one != "w"), candidate=float(one != "l"))
            for place, one in enumerate(text)
        ]

    return build


@pytest.fixture
def sessions_of() -> Callable[..., list[ArmScore]]:
    """Sessions in a random order of arms, each right with the probability of its arm."""

    def build(
        count: int, *, control: float, candidate: float, seed: int, share: float = 0.5
    ) -> list[ArmScore]:
        chance = random.Random(seed)
        scores = []
        for place in range(count):
            arm = "candidate" if chance.random() < share else "control"
            right = chance.random() < (candidate if arm == "candidate" else control)
            scores.append(ArmScore(session=f"s{place}", arm=arm, score=float(right)))
        return scores

    return build


@pytest.fixture
def episode() -> Callable[..., Episode]:
    """An episode with labels, begun so many seconds after midnight."""

    def build(
        episode_id: str, at: int, *, passed: bool | None = None, fault=None, **others
    ) -> Episode:
        labels = {
            name: others.pop(name)
            for name in ("experiment", "arm", "shadow_of", "view_of", "imported")
            if others.get(name) is not None
        }
        verdict = None if passed is None else Verdict(passed=passed, fault=fault)
        return Episode(
            episode_id=episode_id,
            request="how much is it?",
            started_at=f"2026-05-01T00:{at // 60:02}:{at % 60:02}.000+00:00",
            verdict=verdict,
            metadata=labels,
            **others,
        )

    return build


@pytest.fixture
def won() -> Callable[[Iterable[int], float], list[bool]]:
    """Coin flips from seeds: whether each was a win."""

    def flips(seeds: Iterable[int], share: float) -> list[bool]:
        return [random.Random(seed).random() < share for seed in seeds]

    return flips
