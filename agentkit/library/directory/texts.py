"""How a tool stands in its file: as YAML or as JSON, always in the same order."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agentkit.errors import DefinitionError, UsageError
from agentkit.library.directory.yaml_reading import check_yaml_is_there, from_yaml
from agentkit.library.directory.yaml_writing import to_yaml
from agentkit.reading import read_json
from agentkit.tools.definition import ToolDefinition

_ORDER = (
    "name",
    "description",
    "signature",
    "specification",
    "examples",
    "body",
    "origin",
    "format",
)
"""What people review comes first. Keys below these keep the order of the definition."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TextForm:
    """One way to write tools down.

    Attributes:
        name: ``yaml`` or ``json``.
        write: Makes text of an object.
        read: The inverse; raises ``DefinitionError`` with a reason.
        check: Raises ``MissingExtraError`` where it can not be used.
    """

    name: str
    write: Callable[[dict[str, Any]], str]
    read: Callable[[str], Any]
    check: Callable[[], None]

    @property
    def suffix(self) -> str:
        """How the names of its files end."""
        return f".{self.name}"

    def text_of(self, definition: ToolDefinition) -> bytes:
        """The file of a tool. Equal definitions have equal files."""
        # Through JSON, so that what is written is what the history holds.
        record = json.loads(json.dumps(definition.to_json()))
        ordered = {name: record[name] for name in _ORDER if name in record}
        return self.write(ordered | record).encode()


def form_named(name: str) -> TextForm:
    """The form of that name.

    Raises:
        UsageError: There is none.
    """
    if name not in FORMS:
        raise UsageError(f"a store keeps its tools as yaml or json, not as {name!r}")
    return FORMS[name]


def _to_json(record: dict[str, Any]) -> str:
    return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def _from_json(text: str) -> Any:
    try:
        return read_json(text, decode=_STRICT.decode)
    except DefinitionError:
        raise
    except json.JSONDecodeError as error:
        raise DefinitionError(f"line {error.lineno}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise DefinitionError(f"a value can not be read: {error}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DefinitionError(f"the key {twice!r} stands twice in one object")
    return found


def _no_number(word: str) -> None:
    raise DefinitionError(f"{word} is no JSON")


FORMS: Mapping[str, TextForm] = {
    form.name: form
    for form in (
        TextForm(name="yaml", write=to_yaml, read=from_yaml, check=check_yaml_is_there),
        TextForm(name="json", write=_to_json, read=_from_json, check=lambda: None),
    )
}


_STRICT = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_number)
