"""The keys of a library in Redis. There are twelve, whatever the library holds."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

FORMAT = "agentkit-redis 1"
"""Marks a library as ours; the number rises when an older agentkit-redis could not read it."""

FORMAT_NAME, _, FORMAT_NUMBER = FORMAT.partition(" ")


@dataclass(frozen=True, kw_only=True, slots=True)
class Keys:
    """Names of keys. All share their hash tag, so that a cluster keeps them in one slot.

    Attributes:
        head: Hash: format, newest version and its stamp, last event and its hash.
        volume: Hash: number of the last episode, and how many there are, with their bytes.
        versions: Hash by version: its stamp, a space, and what was asked for as JSON. A stamp is
            the SHA-1 over the one before and that JSON, so that two libraries which part ways
            can be told apart.
        proposals: Hash by proposal id: the version that it made.
        definitions: Hash by digest: the definition as JSON.
        tools: Hash by name: the tool of the newest version, as the version and the place where
            it was added, its digest and its origin as JSON, with spaces between.
        revisions: Sorted set of scores 0: name, NUL and version in 16 digits.
        events: Stream by sequence: hash and JSON of each event. It is never trimmed.
        episodes: Stream by number: id, JSON and terms of each episode.
        ids: Hash by episode id: its number.
        index: Sorted set of scores 0: a term, NUL and the number in 16 digits. A term is a letter
            for session, tool or stop reason, and its name.
        ages: Sorted set of the numbers in 16 digits: when each episode began, in seconds.
        channel: Where a commit is told; no key.
    """

    head: str
    volume: str
    versions: str
    proposals: str
    definitions: str
    tools: str
    revisions: str
    events: str
    episodes: str
    ids: str
    index: str
    ages: str
    channel: str

    @classmethod
    def under(cls, prefix: str) -> Self:
        """The keys of the library under a prefix.

        Example:
            >>> Keys.under("team-a").head
            '{team-a}:head'
        """
        return cls(**{one.name: f"{{{prefix}}}:{one.name}" for one in fields(cls)})

    @property
    def all(self) -> tuple[str, ...]:
        """Every key, the head first and the volume second."""
        names = [one.name for one in fields(self) if one.name != "channel"]
        return tuple(getattr(self, name) for name in names)

    @property
    def of_episodes(self) -> tuple[str, ...]:
        """What the scripts about episodes work on, in their order."""
        return (self.head, self.episodes, self.ids, self.index, self.ages, self.volume)


def raw(text: str) -> bytes:
    """Text as Redis holds it, halves of surrogate pairs included: it takes any bytes."""
    return text.encode("utf-8", "surrogatepass")


def text_of(data: bytes) -> str:
    """The inverse of ``raw``."""
    return data.decode("utf-8", "surrogatepass")
