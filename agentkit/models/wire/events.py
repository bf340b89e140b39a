"""Server-sent events, parsed as the bytes arrive.

Follows the WHATWG HTML standard, section 9.2.6 "Interpreting an event stream": lines end with
CR, LF or CRLF; a line that starts with a colon is a comment; several ``data`` lines make one text;
an event ends at an empty line, and one that was cut off is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentkit.models.wire.reading import check_size

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSentEvent:
    """One event.

    Attributes:
        data: Its data lines, joined by newlines.
        event: Its type; ``message`` unless the server named one.
    """

    data: str
    event: str = "message"


class EventParser:
    r"""Turns pieces of a byte stream into events, wherever the stream was cut.

    Example:
        >>> parser = EventParser()
        >>> parser.feed(b": hello\ndata: on")
        []
        >>> parser.feed(b"e\n\n")
        [ServerSentEvent(data='one', event='message')]
    """

    __slots__ = ("_after_return", "_at_start", "_data", "_event", "_size", "_unfinished")

    def __init__(self) -> None:
        self._unfinished: list[bytes] = []
        self._after_return = False
        self._at_start = True
        self._size = 0
        self._data: list[str] = []
        self._event = ""

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """The events that ``chunk`` completes.

        Raises:
            ModelResponseError: The stream is far longer than answers are.
        """
        events = []
        self._size += len(chunk)
        check_size(self._size)
        for line in self._lines(chunk):
            event = self._interpret(line)
            if event is not None:
                events.append(event)
        return events

    def _lines(self, chunk: bytes) -> list[bytes]:
        """Complete lines; a line is split only at CR and LF, so a cut character is never seen."""
        if self._after_return and chunk:
            chunk = chunk.removeprefix(b"\n")  # the other half of CRLF
            self._after_return = False
        if b"\n" not in chunk and b"\r" not in chunk:
            if chunk:
                self._unfinished.append(chunk)
            return []
        self._after_return = chunk.endswith(b"\r")
        lines = b"".join((*self._unfinished, chunk)).splitlines(keepends=True)
        is_complete = lines[-1].endswith((b"\n", b"\r"))
        self._unfinished = [] if is_complete else [lines.pop()]
        return [line.rstrip(b"\r\n") for line in lines]

    def _interpret(self, line: bytes) -> ServerSentEvent | None:
        if self._at_start:
            line = line.removeprefix(_BYTE_ORDER_MARK)
            self._at_start = False
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" ").decode("utf-8", "replace"))
        elif field == b"event":
            self._event = value.removeprefix(b" ").decode("utf-8", "replace")
        return None

    def _dispatch(self) -> ServerSentEvent | None:
        data, event = self._data, self._event
        self._data, self._event = [], ""
        if not data:
            return None
        return ServerSentEvent(data="\n".join(data), event=event or "message")
