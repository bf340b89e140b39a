"""``http_protocol``: requests as uvicorn reads them, but for bodies in crumbs or of two lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

_LONGEST_HEAD = 65_536
"""Bytes of a request's line and headers, as uvicorn has it."""

_FREE_PIECES = 1_000
_BYTES_A_PIECE = 64
"""Less, on average, are refused: each piece takes as long to read as some kilobytes in one."""


def http_protocol() -> type[asyncio.Protocol]:
    """The protocol of one connection; the pieces of its bodies are counted."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Counting(h11.Connection):
        _pieces = _bytes = 0

        def next_event(self) -> Any:
            event = super().next_event()
            if isinstance(event, h11.Request):
                self._pieces = self._bytes = 0
                if {b"content-length", b"transfer-encoding"} <= {name for name, _ in event.headers}:
                    raise h11.RemoteProtocolError(
                        "a proxy may read another length"
                    )  # RFC 9112, 6.1
            if isinstance(event, h11.Data):
                self._pieces, self._bytes = self._pieces + 1, self._bytes + len(event.data)
                if self._pieces > _FREE_PIECES + self._bytes // _BYTES_A_PIECE:
                    raise h11.RemoteProtocolError(f"{self._pieces} pieces of a few bytes")
            return event

    class Http(H11Protocol):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.conn = Counting(h11.SERVER, _LONGEST_HEAD)

        def send_400_response(self, msg: str) -> None:
            """Refuse a request that is none; where its answer has begun, end the connection.

            Whoever reads its body or writes its answer finds the client gone, and nothing to log.
            """
            cycle: Any = self.cycle  # none before the first request
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
            if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
                super().send_400_response(msg)
            else:
                self.transport.close()

    return Http
