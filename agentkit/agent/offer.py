"""``Offer``: the tools that a model may call. It only ever grows, at its end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool


@dataclass(kw_only=True)
class Offer:
    """The tools offered in one run, in the order in which the model reads them.

    A prompt begins with the tools, so whatever a provider has cached of a conversation is lost at
    the first difference among them. Hence nothing is ever taken out or moved.

    Attributes:
        library: The pinned snapshot that tools are taken from.
        own: A tool of the runtime, offered before all others; None for none.
        deferred: What the model's provider may search; the same object for the whole run.
    """

    library: Library
    own: Tool | None = None
    deferred: tuple[ToolDefinition, ...] = field(init=False, default=())
    _tools: dict[str, Tool] = field(init=False, default_factory=dict)
    _shown: set[str] = field(init=False, default_factory=set)
    _definitions: tuple[ToolDefinition, ...] | None = field(init=False, default=None)

    @classmethod
    def whole(cls, library: Library) -> Offer:
        """Every tool of a library."""
        offer = cls(library=library)
        offer._tools = dict(library.tools)
        offer._definitions = library.definitions
        return offer

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """What the model reads; the same object until something is added."""
        if self._definitions is None:
            own = () if self.own is None else (self.own.definition,)
            self._definitions = (*own, *(tool.definition for tool in self._tools.values()))
        return self._definitions

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the library's tools that are offered, in order."""
        return tuple(self._tools)

    @property
    def is_usable(self) -> bool:
        """Whether there is anything to call."""
        return bool(self.definitions or self.deferred)

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def get(self, name: str) -> Tool | None:
        """The offered tool of that name; None for one that is not offered."""
        tool = self._tools.get(name)
        if tool is None and self.own is not None and name == self.own.name:
            return self.own
        if tool is None and self.deferred:  # what was searched is all of the library
            return self.library.get(name)
        return tool

    def take(self, name: str) -> Tool | None:
        """The tool of that name if the model may call it; offered from now on if it was not.

        One of which the model has seen the card may be called at once: its arguments are checked
        as always. A tool that no retriever gave is refused, whether or not the library has it.
        """
        if name in self._shown:
            self.add((name,))
        return self.get(name)

    def show(self, names: Iterable[str]) -> None:
        """Remember of which tools the model is shown a card."""
        self._shown.update(names)

    def defer_rest(self) -> None:
        """Leave every tool that is not offered to the search of the model's provider.

        A tool that the model finds and calls there stays deferred: the provider has its schema in
        the conversation, and the prompt stays as it was.
        """
        rest = (one for one in self.library.definitions if one.name not in self._tools)
        self.deferred = tuple(rest)

    def add(self, names: Iterable[str]) -> tuple[str, ...]:
        """Offer more tools of the library; names that it lacks are ignored.

        Returns:
            The names of those that were not offered before.
        """
        new = {name: self.library[name] for name in names if name in self.library}
        added = tuple(name for name in new if name not in self._tools)
        if added:
            self._tools |= {name: new[name] for name in added}
            self._definitions = None
        return added
