"""A tool's history, read: its revisions with their texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentkit.evolution.language.pieces import words
from agentkit.evolution.language.texts import texts_of
from agentkit.library.store import ToolRevision
from agentkit.tools.definition import ToolDefinition


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """A revision that has a definition, with its texts.

    Attributes:
        revision: The revision.
        definition: Its definition.
        fields: What it says, by field.
        whole: All of that as one text.
        words: The words of that.
    """

    revision: ToolRevision
    definition: ToolDefinition
    fields: Mapping[str, str]
    whole: str
    words: Sequence[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Story:
    """A tool's history.

    Attributes:
        name: The tool.
        states: The revisions that have a definition, one at least.
        history: All revisions, those included in which it was removed.
    """

    name: str
    states: Sequence[State]
    history: Sequence[ToolRevision]

    @property
    def first(self) -> State:
        """The first state."""
        return self.states[0]

    @property
    def last(self) -> State:
        """The last state, also of a tool that is gone."""
        return self.states[-1]

    @property
    def removed_at(self) -> tuple[int, ...]:
        """Library versions that removed it."""
        return tuple(one.version for one in self.history if one.definition is None)

    @property
    def is_removed(self) -> bool:
        """Whether it is gone now."""
        return self.history[-1].definition is None


def read_story(name: str, history: Sequence[ToolRevision]) -> Story | None:
    """A history with its texts; None when it holds no definition at all."""
    states = tuple(_states(history))
    return Story(name=name, states=states, history=history) if states else None


def differing(before: State, after: State) -> tuple[str, ...]:
    """The fields whose words differ, in the order of the later text."""
    fields = dict.fromkeys((*after.fields, *before.fields))
    return tuple(one for one in fields if before.fields.get(one) != after.fields.get(one))


def _states(history: Sequence[ToolRevision]) -> Iterator[State]:
    for revision in history:
        definition = revision.definition
        if definition is not None:
            fields = texts_of(definition)
            whole = "\n".join(fields.values())
            yield State(
                revision=revision,
                definition=definition,
                fields=fields,
                whole=whole,
                words=words(whole),
            )
