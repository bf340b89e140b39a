"""A picture, a document and a sound, as small as they can be."""

from __future__ import annotations

import struct
import zlib

from agentkit import Audio, File, Image


def png(colour: bytes = b"\xff\0\0") -> bytes:
    """A picture of one point."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", head),
            chunk(b"IDAT", zlib.compress(b"\0" + colour)),
            chunk(b"IEND", b""),
        ]
    )


RED, PDF = Image(data=png(), name="red.png"), File(data=b"%PDF-1.7 page", name="bill.pdf")
WAV = Audio(data=b"RIFF\x24\0\0\0WAVEfmt ")
