"""Corpora of changed definitions, for trying checks of validation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentkit.errors import UsageError
from agentkit.evolution.validation.report import ProposedChange
from agentkit.library.library import Library
from agentkit.testing.rewrites import rewrite


@dataclass(frozen=True, kw_only=True, slots=True)
class RewriteCase:
    """One line of a corpus of changes.

    Attributes:
        tool: The tool that it changes.
        place: Where, as for ``rewrite``.
        value: What stands there then.
        labels: The further columns, such as class, style and language.
        evidence: Messages of failed calls, which start with *failed*, and accepted calls, that
            support the change.
    """

    tool: str
    place: str
    value: Any
    labels: Mapping[str, str]
    evidence: tuple[str, ...] = ()

    def change(self, library: Library) -> ProposedChange:
        """The change itself, with what tools said of failed calls and took in accepted ones."""
        said = tuple(text for text in self.evidence if text.startswith("failed"))
        return rewrite(self.tool, {self.place: self.value}, library=library, sources=said)


def read_rewrites(path: Path) -> tuple[RewriteCase, ...]:
    """The changes of a corpus: columns by tabs, named in the first line, or JSON lines.

    Needed are ``tool``, ``place`` and ``text``. The text is JSON when it starts with a quotation
    mark (for escapes of what cannot be seen), or the place with a slash (for any value). In a file
    that ends in ``.jsonl`` the text is any JSON value, and ``evidence`` is a list of texts.

    Raises:
        UsageError: A line has more or fewer columns than the first one.
    """
    if path.suffix == ".jsonl":
        lines = path.read_text(encoding="utf-8").split("\n")
        return tuple(_case(json.loads(line)) for line in lines if line)
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(_cases(header.split("\t"), lines, path))


def _case(row: dict[str, Any]) -> RewriteCase:
    tool, place, value = (row.pop(name) for name in ("tool", "place", "text"))
    evidence = tuple(row.pop("evidence", ()))
    return RewriteCase(tool=tool, place=place, value=value, labels=row, evidence=evidence)


def _cases(names: list[str], lines: Iterable[str], path: Path) -> Iterator[RewriteCase]:
    for number, line in enumerate(lines, start=2):
        fields = line.split("\t")
        if len(fields) != len(names):
            raise UsageError(
                f"{path.name}:{number} has {len(fields)} columns, the first line {len(names)}; "
                "put a tab between two columns and none inside of one"
            )
        row = dict(zip(names, fields, strict=True))
        place, text = row.pop("place"), row.pop("text")
        is_json = text.startswith('"') or place.startswith("/")
        value = json.loads(text) if is_json else text
        yield RewriteCase(tool=row.pop("tool"), place=place, value=value, labels=row)
