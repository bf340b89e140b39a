"""Every error that agentkit raises, in one tree: catch the top broadly, a leaf narrowly.

* AgentKitError
    * UsageError                 the API was used in a way that cannot work
        * OtherAgentError        a run waits for another agent, or for tools as they were
        * AnsweredBeforeError    the waiting calls of a run have their answers
    * PortTakenError             another process listens at the port
    * ReadingLimitError          what was read would grow beyond its bounds (a ValueError)
    * MissingExtraError          an optional dependency is absent (an ImportError)
    * DefinitionError            a tool definition is not usable
        * CompositeError         the text or data of a composite is outside the language
    * CompositeRunError          a composite could not be run to its end
        * ContractViolation      a pre- or postcondition does not hold
    * LibraryError
        * ToolNotFoundError      no tool of that name in this snapshot (a LookupError)
        * DuplicateToolError     two different tools claim one name
        * CodeDriftError         code and library differ, and nothing may be written
    * StoreError
        * StoreUnavailableError  the store cannot be reached now; the same call may work later
        * StoreLookupError       no such store, version, event or episode (a LookupError)
        * EpisodeNotKeptError    a run ended, and the store does not have its episode yet
        * ReadOnlyStoreError     the store is only read here
        * UnknownSchemeError     no store answers for that URL
        * StaleVersionError      another writer was faster
            * StaleChainError    another writer's events came first
        * StoreFormatError       the file is broken, or written by a newer agentkit
    * ArtifactError              an artifact is broken, changed, or written by a newer agentkit
    * EpisodeFormatError         a stored episode cannot be read
        * NewerEpisodeError      it was written by a newer agentkit
    * ModelError
        * ModelNotFoundError     no such model, or its weights are not installed
        * ModelConnectionError   the server could not be reached, or hung up
        * ModelTimeoutError      the server did not answer in time
        * ModelStatusError       the server answered with an error status
        * ModelResponseError     the answer is not what the protocol says
        * ReplayMismatchError    a script of a test has run out
    * RunError                   a run could not go on; carries the episode so far
    * McpError
        * McpConnectionError     an MCP server could not be reached, or hung up (a ConnectionError)
    * FetchError                 a data file could not be downloaded, or is not what was expected
    * DatasetError               a benchmark's file does not hold what it should

A warning, not an error: a program goes on.

* LibraryWarning                 something about code and library that a person should know

Not errors but signals, raised by tool authors to speak to the model:

* ToolSignal
    * ModelRetry                 try again, here is why
    * ToolFailed                 this is final, adapt

A failed tool call, a broken limit or a rejected proposal is a *value* (``ToolFailure``,
``StopReason``), not an exception: it goes back to the model or to the caller as data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class AgentKitError(Exception):
    """Root of every error that agentkit raises."""


class UsageError(AgentKitError):
    """The API was used in a way that cannot work; the message says what to change."""


class OtherAgentError(UsageError):
    """A run waits for another agent, or for tools that have changed; nothing was decided."""


class AnsweredBeforeError(UsageError):
    """The waiting calls of a run were answered before, perhaps elsewhere; nothing runs twice."""


class PortTakenError(AgentKitError):
    """Another process listens at the port already."""


class ReadingLimitError(AgentKitError, ValueError):
    """What was to be read would grow beyond its bounds; the message says how to raise them."""


class MissingExtraError(AgentKitError, ImportError):
    """An optional dependency is absent.

    Attributes:
        package: What could not be imported.
        install: The pip line that brings it.
    """

    def __init__(self, feature: str, *, package: str, install: str) -> None:
        self.package = package
        self.install = install
        super().__init__(
            f"{feature} needs the package {package!r}, which is not installed. Run: {install}"
        )


class DefinitionError(AgentKitError):
    """A tool definition is not usable.

    Attributes:
        tool_name: The tool, as far as it is known.
    """

    def __init__(self, message: str, *, tool_name: str | None = None) -> None:
        self.tool_name = tool_name
        super().__init__(message)


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceProblem:
    """One thing that is wrong with the text or data of a composite, fit for a repair loop.

    Attributes:
        code: What is wrong, a key of ``agentkit.composites.problems.ADVICE``.
        message: The same in a sentence, with the names and values concerned.
        advice: What to write instead.
        line: Line in the text, from 1; for a program that came as data, the line of the text that
            ``render`` makes of it.
        column: Column in that line, from 1.
    """

    code: str
    message: str
    advice: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return (
            f"line {self.line}, column {self.column}: {self.message} [{self.code}]. {self.advice}"
        )


class CompositeError(DefinitionError):
    """The text or data of a composite is outside the language, or does not fit its children.

    Attributes:
        problems: What is wrong, in the order of the text.
    """

    def __init__(
        self, message: str, *, problems: Sequence[SourceProblem], tool_name: str | None = None
    ) -> None:
        self.problems = tuple(problems)
        super().__init__(message, tool_name=tool_name)


class CompositeRunError(AgentKitError):
    """A composite could not be run to its end.

    Attributes:
        code: What went wrong, such as ``zero_division``, ``fuel`` or ``child_failed``; all codes
            are in ``agentkit.composites.problems.RunCode``.
        path: Names of the tools from the outermost composite down to where it happened.
        expression: The part of the program, as text; empty when none can be named.
    """

    def __init__(
        self, message: str, *, code: str, path: Sequence[str] = (), expression: str = ""
    ) -> None:
        self.code = code
        self.path = tuple(path)
        self.expression = expression
        super().__init__(message)


class ContractViolation(CompositeRunError):  # noqa: N818 - the standard term
    """A pre- or postcondition of a tool does not hold for this call.

    Attributes:
        tool_name: The tool whose condition it is.
        condition: The expression that is false, or that could not be evaluated.
        values: The parameters, and ``result`` for a postcondition, that it speaks of.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        tool_name: str,
        condition: str,
        values: Mapping[str, object],
        path: Sequence[str] = (),
    ) -> None:
        self.tool_name = tool_name
        self.condition = condition
        self.values = dict(values)
        super().__init__(message, code=code, path=path, expression=condition)


class LibraryError(AgentKitError):
    """A library snapshot cannot do what was asked."""


class ToolNotFoundError(LibraryError, LookupError):
    """No tool of that name is in this snapshot.

    Attributes:
        tool_name: The name that was asked for.
        nearest: Names in the snapshot that look like it, best first.
    """

    def __init__(self, tool_name: str, *, nearest: Sequence[str] = (), version: int = 0) -> None:
        self.tool_name = tool_name
        self.nearest = tuple(nearest)
        hint = f" Did you mean {', '.join(map(repr, nearest))}?" if nearest else ""
        super().__init__(f"no tool named {tool_name!r} in library version {version}.{hint}")


class DuplicateToolError(LibraryError):
    """Two different tools claim one name.

    Attributes:
        tool_name: The name.
        places: Where their code is, as far as it is known.
    """

    def __init__(self, tool_name: str, places: Iterable[str] = ()) -> None:
        self.tool_name = tool_name
        self.places = tuple(place for place in places if place)
        where = f" ({' and '.join(self.places)})" if self.places else ""
        super().__init__(
            f"two different tools are named {tool_name!r}{where}; a model calls tools by name, "
            'so give one of them another: @tool(name="...")'
        )


class CodeDriftError(LibraryError):
    """Code and library differ, and the library was to stay as it is.

    Attributes:
        differences: What differs, a line each.
    """

    def __init__(self, differences: Sequence[str]) -> None:
        self.differences = tuple(differences)
        lines = "\n".join(f"  {line}" for line in self.differences)
        super().__init__(
            f"the code differs from the library, which is frozen:\n{lines}\n"
            "start once without frozen to write the difference, or run the code that it was made of"
        )


class LibraryWarning(UserWarning):
    """Something about code and library that a person should know, such as a contract that changed.

    ``agent.binding.notes`` holds the same lines.
    """


class StoreError(AgentKitError):
    """A store could not do what was asked."""


class StoreLookupError(StoreError, LookupError):
    """There is no such store, or no such version, event or episode in it."""


class ReadOnlyStoreError(StoreError):
    """The store is only read here; write where it is kept."""


class StoreUnavailableError(StoreError):
    """The store cannot be reached now, or not in time; the same call may work later.

    Of a commit that ended so nobody knows whether it was applied: send it again as it is. A known
    ``proposal_id`` is applied once.
    """


class EpisodeNotKeptError(StoreError):
    """A run ended and the store does not have its episode yet; it waits in memory.

    Attributes:
        episode: The record of the run (an ``agentkit.episodes.Episode``).
    """

    def __init__(self, message: str, *, episode: object) -> None:
        self.episode = episode
        super().__init__(message)


class UnknownSchemeError(StoreError):
    """No installed store answers for the scheme of a URL.

    Attributes:
        scheme: The scheme that was asked for.
        installed: Schemes that would have worked.
    """

    def __init__(self, url: str, *, scheme: str, installed: Sequence[str], install: str) -> None:
        self.scheme = scheme
        self.installed = tuple(installed)
        super().__init__(
            f"no store for {url!r}: the scheme {scheme!r} is not among the installed ones "
            f"({', '.join(installed)}). {install}"
        )


class StaleVersionError(StoreError):
    """Another writer committed first; load again, rebuild the change and retry.

    Attributes:
        expected: The version that the change was built on.
        actual: The version that the store is at.
    """

    def __init__(self, *, expected: int, actual: int) -> None:
        self.expected = expected
        self.actual = actual
        super().__init__(
            f"the change was built on library version {expected}, but the store is at {actual}; "
            "load the newest version, rebuild the change and commit again"
        )


class StaleChainError(StaleVersionError):
    """Another writer's events came first; read the chain's end, chain the events anew and retry.

    Attributes:
        expected: Sequence of the event that the change's events were to follow; 0 for none.
        actual: Sequence of the last event that the store holds; 0 for none.
    """

    def __init__(self, *, expected: int, actual: int) -> None:
        super().__init__(expected=expected, actual=actual)
        held = f"ends with event {actual}" if actual else "is empty"
        other = ", which is another one" if actual == expected else ""
        message = (
            f"the change's events follow event {expected}, but the chain of the store "
            f"{held}{other}; read the chain's end, chain the events anew and commit again"
        )
        self.args = (message,)


class StoreFormatError(StoreError):
    """The file is broken, or written by a newer agentkit; nothing in it was changed."""


class ArtifactError(AgentKitError):
    """An artifact is cut off, changed after it was written, unsigned, or from a newer agentkit.

    Attributes:
        place: What in the file is wrong, such as ``library.definitions[3]``; empty for the file.
    """

    def __init__(self, message: str, *, place: str = "") -> None:
        self.place = place
        super().__init__(message)


class EpisodeFormatError(AgentKitError):
    """A stored episode cannot be read."""


class NewerEpisodeError(EpisodeFormatError):
    """A stored episode was written by a newer agentkit."""


class ModelError(AgentKitError):
    """A model could not answer."""


class ModelNotFoundError(ModelError, LookupError):
    """No such model, or its weights are not installed; the message says how to get it."""


class ModelConnectionError(ModelError):
    """The server could not be reached, or hung up before the answer was complete."""


class ModelTimeoutError(ModelError):
    """The server did not answer within the time allowed."""


class ModelStatusError(ModelError):
    """The server answered with an error status.

    Attributes:
        status: The HTTP status code.
        body: The start of the body.
        retry_after: Seconds that the server asked to wait, if it did.
    """

    def __init__(self, message: str, *, status: int, body: str, retry_after: float | None) -> None:
        self.status = status
        self.body = body
        self.retry_after = retry_after
        super().__init__(message)


class ModelResponseError(ModelError):
    """The server's answer is not what the protocol says."""


class ReplayMismatchError(ModelError):
    """The script of a model for tests has run out."""


class RunError(AgentKitError):
    """A run could not go on; what happened so far is kept.

    Attributes:
        episode: The episode up to the failure (an ``agentkit.episodes.Episode``).
    """

    def __init__(self, message: str, *, episode: object) -> None:
        self.episode = episode
        super().__init__(message)


class McpError(AgentKitError):
    """An MCP server cannot be used.

    Attributes:
        server: What we call it.
    """

    def __init__(self, message: str, *, server: str) -> None:
        self.server = server
        super().__init__(message)


class McpConnectionError(McpError, ConnectionError):
    """An MCP server could not be reached, or hung up.

    Inside a call this is the call's failure: the model reads it, and a tool that is safe to repeat
    is tried again.
    """


class FetchError(AgentKitError):
    """A data file could not be downloaded, or is not what was expected."""


class DatasetError(AgentKitError):
    """A benchmark's file does not hold what it should; the message names the place."""


class ToolSignal(Exception):  # noqa: N818 - a signal to the model, not an error of the program
    """Raised inside a tool to say something to the model in its author's words."""

    def __init__(self, message: str) -> None:
        self.message = str(message)
        super().__init__(message)


class ModelRetry(ToolSignal):
    """The call can succeed when the model changes it: try again, here is why.

    Counts against the tool's retry budget. Raise ``ToolFailed`` when trying again cannot help.

    Example:
        >>> def book(day: str) -> str:
        ...     if day == "Sunday":
        ...         raise ModelRetry("we are closed on Sunday; offer Monday to Saturday")
        ...     return "booked"
    """


class ToolFailed(ToolSignal):
    """The call failed for good: do not try again, adapt.

    Raise ``ModelRetry`` when another value of an argument could work.
    """
