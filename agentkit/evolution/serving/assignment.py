"""Who takes part in what: pure functions of ids, so that nobody has to remember.

A place between 0 and 1 is made of the SHA-256 of the ids, and compared with the share. So the same
session always gets the same arm, in every process; and raising the share only adds sessions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Literal, TypeVar

from agentkit.evolution.serving.experiments import Experiment

Arm = Literal["candidate", "control"]

T = TypeVar("T", bound=Experiment)


def place(purpose: str, key: str, proposal_id: str) -> float:
    """A number from 0 up to, but not including, 1 that looks random and is always the same.

    The first 53 bits of the SHA-256 over ``[purpose, key, proposal_id]`` as JSON in ASCII, so that
    no two lists of ids read alike.

    Args:
        purpose: Keeps decisions apart that are made about the same session.
        key: The session.
        proposal_id: The experiment.

    Example:
        >>> round(place("arm", "session-1", "feedback-1"), 6)
        0.219665
    """
    text = json.dumps([purpose, key, proposal_id])
    bits = int.from_bytes(hashlib.sha256(text.encode("ascii")).digest()[:7], "big") >> 3
    return bits / (1 << 53)


def arm(key: str, proposal_id: str, share: float) -> Arm:
    """Which definition serves a session.

    Args:
        key: The session.
        proposal_id: The experiment.
        share: Share of the sessions that get the candidate, from 0 to 1.
    """
    return "candidate" if place("arm", key, proposal_id) < share else "control"


def experiment_for(key: str, experiments: Sequence[T]) -> T | None:
    """The one experiment that a session takes part in, if there are any.

    Each draws a place for the session, and the highest wins (rendezvous hashing). So sessions are
    divided evenly and independently of arms, and an experiment that begins or ends moves only
    sessions to it or from it. With one experiment at most, what is seen of a session is the work
    of one candidate, and its episodes carry one label.
    """
    if len(experiments) == 1:
        return experiments[0]
    return max(
        experiments,
        key=lambda one: (place("experiment", key, one.proposal_id), one.proposal_id),
        default=None,
    )
