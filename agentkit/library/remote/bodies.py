"""Bodies of answers: unpacked and cut into lines, with bounds on everything."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agentkit.errors import StoreFormatError

_GZIP = 16 + zlib.MAX_WBITS
_PIECE = 1 << 18


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """How much is taken from a server, which may be anybody's.

    Attributes:
        head_bytes: Of a head.
        page_bytes: Of a page, after unpacking. A page holds whole changes, and one change may
            bring ten thousand tools.
        line_bytes: Of a line: a definition or an event.
        library_bytes: Of all pages that are read in a row.
    """

    head_bytes: int = 1_000_000
    page_bytes: int = 256_000_000
    line_bytes: int = 32_000_000
    library_bytes: int = 1_000_000_000


def unpacked(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """What a body says, a bounded piece at a time: a small body may unpack to very much.

    Args:
        pieces: The body as it came.
        encoding: The header ``Content-Encoding``.

    Raises:
        StoreFormatError: The body is packed in a way that was not asked for, or is damaged.
    """
    match encoding.strip().lower():
        case "" | "identity":
            yield from pieces
        case "gzip":
            yield from _unzipped(pieces)
        case other:
            raise StoreFormatError(f"the answer is packed by {other[:40]!r}, not by gzip")


def _unzipped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(_GZIP)
    try:
        for piece in pieces:
            rest = piece
            while rest and not unpacker.eof:
                yield unpacker.decompress(rest, _PIECE)
                rest = unpacker.unconsumed_tail
        while not unpacker.eof and (more := unpacker.decompress(b"", _PIECE)):
            yield more
    except zlib.error as error:
        raise StoreFormatError(f"the answer can not be unpacked: {error}") from error
    if not unpacker.eof:
        raise StoreFormatError("the answer breaks off before its end")


def lines_of(pieces: Iterable[bytes], *, most: int, longest: int) -> Iterator[bytes]:
    r"""The lines of a body.

    Args:
        pieces: The body, unpacked.
        most: Bytes of the whole.
        longest: Bytes of one line.

    Raises:
        StoreFormatError: There is more than that, or the last line has no end.

    Example:
        >>> list(lines_of([b"a\nb", b"c\n"], most=10, longest=5))
        [b'a', b'bc']
    """
    size, open_line = 0, bytearray()
    for piece in pieces:
        size += len(piece)
        if size > most:
            raise StoreFormatError(
                f"the answer has more than {most:,} bytes; nothing of it is used"
            )
        *whole, rest = piece.split(b"\n")
        for part in whole:
            open_line += part
            _check_length(open_line, longest)
            yield bytes(open_line)
            open_line.clear()
        open_line += rest
        _check_length(open_line, longest)
    if open_line:
        raise StoreFormatError("the answer breaks off in the middle of a line")


def _check_length(line: bytearray, longest: int) -> None:
    if len(line) > longest:
        raise StoreFormatError(f"a line of the answer has more than {longest:,} bytes")
