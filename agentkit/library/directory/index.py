"""``index.json``: up to which change the files of tools were written, and what was written.

One line for each tool, so that a change of one is a change of one line. Losing the file loses
nothing: it is made again from the history and the files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentkit.library.directory.entries import (
    FORMAT_VERSION,
    check_format,
    damaged,
    json_object,
)

_text = json.encoder.encode_basestring
_DIGITS = frozenset("0123456789abcdef")


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """The file of a tool, as the store knows it.

    Attributes:
        file: Its name in ``tools/``.
        digest: Of the definition that it was written from. An edit by hand was made from this one.
        content: SHA-256 of what stood in it then; empty when that is not known.
    """

    file: str
    digest: str
    content: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Index:
    """The files of tools as they were last written.

    Attributes:
        form: How tools are written: ``yaml`` or ``json``.
        place: The change that made the version which the files show.
        head: Digest of its file in the history.
        version: The library version that they show.
        tools: By name, in the order of names.
    """

    form: str
    place: int = 0
    head: str = ""
    version: int = 0
    tools: Mapping[str, Written] = field(default_factory=dict)

    def encoded(self) -> bytes:
        """The file."""
        head = {
            "format": FORMAT_VERSION,
            "form": self.form,
            "version": self.version,
            "place": self.place,
            "head": self.head,
        }
        lines = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
        # A store of ten thousand tools writes as many rows with each commit.
        rows = ",\n".join(
            f'  {_text(name)}: [{_text(one.file)}, "{one.digest}", "{one.content}"]'
            for name, one in sorted(self.tools.items())
        )
        tools = f"{{\n{rows}\n }}" if rows else "{}"
        return ("{\n" + ",\n".join([*lines, f' "tools": {tools}']) + "\n}\n").encode()


def decoded(content: bytes, path: Path) -> Index:
    """The inverse of ``Index.encoded``.

    Raises:
        StoreFormatError: The file is none of ours, damaged, holds what git could not merge, or was
            written by a newer agentkit.
    """
    record = json_object(content, path)
    check_format(record, path)
    shape = {"form": str, "version": int, "place": int, "head": str, "tools": dict}
    for name, kind in shape.items():
        if type(record.get(name)) is not kind:
            raise damaged(
                path,
                f"{name!r} is {record.get(name)!r:.60}; or delete it, it is made "
                "again from the history",
            )
    tools = {name: _written(row, path) for name, row in record["tools"].items()}
    return Index(**{name: record[name] for name in shape} | {"tools": tools})


def _written(row: Any, path: Path) -> Written:
    is_row = isinstance(row, list) and len(row) == len(Written.__dataclass_fields__)
    if not is_row or not all(isinstance(one, str) for one in row):
        raise damaged(path, f"it holds {row!r:.60} in the place of a tool's file")
    file, digest, content = row
    if not {*digest, *content} <= _DIGITS:
        raise damaged(path, f"{row!r:.60} holds what is no digest")
    if not file or file in {".", ".."} or "/" in file or "\\" in file:
        raise damaged(path, f"{file!r} is no name of a file in tools/")
    return Written(file=file, digest=digest, content=content)
