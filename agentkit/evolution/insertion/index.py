"""The tools of a library by what makes them alike: found by a key, never by a scan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from agentkit.evolution.insertion.bodies import normal_form
from agentkit.evolution.insertion.signatures import signature_key
from agentkit.tools.definition import ToolDefinition

_Groups: TypeAlias = dict[str, tuple[str, ...]]


class Alike(NamedTuple):
    """Names of tools that are like one definition.

    Attributes:
        signature: Those whose parameters have the same types, whatever their names and order, and
            whose results have the same type.
        program: The composites among them whose program differs in names only.
    """

    signature: tuple[str, ...]
    program: tuple[str, ...]


class ToolIndex:
    """Names of tools by signature, and of composites by program as well.

    Immutable; ``with_definitions`` gives a new one at the cost of copying two dicts. It is made
    when it is first asked, so that who never compares tools pays nothing.

    Args:
        definitions: What to index.
    """

    __slots__ = ("_alike", "_keys", "_same", "_waiting")

    def __init__(self, definitions: Iterable[ToolDefinition] = ()) -> None:
        self._waiting: tuple[ToolDefinition, ...] | None = tuple(definitions)
        self._alike: _Groups = {}
        self._same: _Groups = {}
        self._keys: dict[str, tuple[str, str]] = {}

    def like(self, definition: ToolDefinition) -> Alike:
        """The tools that a candidate has to be compared with."""
        self._make()
        signature, program = _keys_of(definition)
        return Alike(signature=self._alike.get(signature, ()), program=self._same.get(program, ()))

    def with_definitions(self, definitions: Iterable[ToolDefinition]) -> ToolIndex:
        """An index that also holds ``definitions``; one of the same name is replaced."""
        self._make()
        changed = ToolIndex()
        changed._alike, changed._same = dict(self._alike), dict(self._same)
        changed._keys = dict(self._keys)
        changed._waiting = None
        for definition in definitions:
            changed._put(definition.name, _keys_of(definition))
        return changed

    def _make(self) -> None:
        """Two threads that ask at once make the same, one after the other."""
        waiting = self._waiting
        if waiting is None:
            return
        keys = {definition.name: _keys_of(definition) for definition in waiting}
        alike: dict[str, list[str]] = {}
        same: dict[str, list[str]] = {}
        for name, (signature, program) in keys.items():
            alike.setdefault(signature, []).append(name)
            if program:
                same.setdefault(program, []).append(name)
        self._keys = keys
        self._alike = {key: tuple(names) for key, names in alike.items()}
        self._same = {key: tuple(names) for key, names in same.items()}
        self._waiting = None

    def _put(self, name: str, keys: tuple[str, str]) -> None:
        earlier = self._keys.get(name, ("", ""))
        self._keys[name] = keys
        for groups, before, after in zip((self._alike, self._same), earlier, keys, strict=True):
            if before == after:
                continue
            if before:
                groups[before] = tuple(other for other in groups[before] if other != name)
            if after:
                groups[after] = (*groups.get(after, ()), name)


def _keys_of(definition: ToolDefinition) -> tuple[str, str]:
    """Signature, and signature with program; the second is empty for a primitive."""
    signature = signature_key(definition.signature)
    if definition.body is None:
        return signature, ""
    return signature, f"{signature} {normal_form(definition.body).text}"
