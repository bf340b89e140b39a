"""Ids of episodes that are the same in every repetition of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agentkit.episodes import Diagnosis, Episode, Turn
from agentkit_training.rollout.samples import Rollout


def with_stable_ids(rollouts: Sequence[Rollout], *, run: str, step: int) -> tuple[Rollout, ...]:
    """The rollouts with episodes named after run, step, task, attempt and user turn.

    Ids of the runtime are random. Here they decide too much for that: mining takes trajectories in
    the order of their ids, a store keeps an episode once, and proposals name those that they
    come from. Tokens stay with the rollout's sequences.

    Example:
        >>> from agentkit import Episode
        >>> one = Rollout(
        ...     task_id="t", attempt=2, episodes=(Episode(episode_id="x", request=""),),
        ...     sequences=(), library_version=0)
        >>> with_stable_ids([one], run="r", step=7)[0].episodes[0].episode_id
        'r-000007-t-002-00'
    """
    return tuple(_named(rollout, f"{run}-{step:06}") for rollout in rollouts)


def _named(rollout: Rollout, prefix: str) -> Rollout:
    stem = f"{prefix}-{rollout.task_id}-{rollout.attempt:03}"
    names = {one.episode_id: f"{stem}-{at:02}" for at, one in enumerate(rollout.episodes)}
    episodes = tuple(_renamed(one, names, session=stem) for one in rollout.episodes)
    return replace(rollout, episodes=episodes)


def _renamed(episode: Episode, names: Mapping[str, str], *, session: str) -> Episode:
    resumes = episode.resumes
    return replace(
        episode,
        episode_id=names[episode.episode_id],
        resumes=None if resumes is None else names.get(resumes, resumes),
        session_id=None if episode.session_id is None else session,
        diagnosis=None if episode.diagnosis is None else _diagnosis(episode.diagnosis, names),
    )


def _diagnosis(diagnosis: Diagnosis, names: Mapping[str, str]) -> Diagnosis:
    recoveries = tuple(
        replace(one, episode=names.get(one.episode, one.episode)) for one in diagnosis.recoveries
    )
    return replace(diagnosis, recoveries=recoveries)


def as_learned_from(episode: Episode) -> Episode:
    """The episode as those need it who look at calls and words: without tokens."""
    return replace(episode, turns=tuple(map(_without_tokens, episode.turns)))


def _without_tokens(turn: Turn) -> Turn:
    refine = None if turn.refine is None else replace(turn.refine, tokens=())
    return replace(turn, tokens=None, refine=refine)
