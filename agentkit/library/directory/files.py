"""The files of tools in a directory store: their names, what they show, and edits by hand."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentkit.errors import DefinitionError, MissingExtraError, ReadingLimitError
from agentkit.library.directory.folder import Folder
from agentkit.library.directory.log import has_markers
from agentkit.library.library import Library
from agentkit.reading import know_json, read_yaml
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.sources.json_records import record_faults

if TYPE_CHECKING:
    import yaml

_MOST_LEVELS = 300
"""Deeper data would break the parser rather than fail."""

_LEAST = 20_000
"""So many values any file may hold; a larger one holds one for each sixteen characters."""


def from_yaml(content: str) -> Any:
    """The data of a YAML document.

    Raises:
        DefinitionError: It is no YAML, or uses what JSON does not have.
    """
    loader = _loader()
    import yaml

    try:
        return read_yaml(content, loader, least=_LEAST, levels=_MOST_LEVELS)
    except yaml.YAMLError as error:
        raise DefinitionError(_in_our_words(error)) from error
    except ReadingLimitError as error:
        raise DefinitionError(str(error)) from error
    except RecursionError as error:
        raise DefinitionError("it is nested too deeply") from error
    except ValueError as error:  # such as a number of thousands of digits
        raise DefinitionError(f"a value cannot be read: {error}") from error


def require_yaml() -> None:
    """Say what to install where PyYAML is not there."""
    if find_spec("yaml") is None:
        raise MissingExtraError(
            "a store of YAML files", package="pyyaml", install='pip install "agentkit-evolve[dir]"'
        )


@cache
def _loader() -> type[yaml.SafeLoader]:
    require_yaml()
    import yaml

    base: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc, valid-type]  # which one is there is known now
        """Knows the words of JSON alone."""

        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - as the base has it

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002 - as the base has it
            found: dict[str, Any] = {}
            for key_node, value_node in node.value:
                key = self.construct_object(key_node, deep=True)
                line = key_node.start_mark.line + 1
                if not isinstance(key, str):
                    raise DefinitionError(
                        f"line {line}: the key {key!r} is not text; put it in quotes"
                    )
                if key in found:
                    raise DefinitionError(f"line {line}: the key {key!r} is here a second time")
                found[key] = self.construct_object(value_node, deep=deep)
            return found

    know_json(Loader)
    return Loader


def _in_our_words(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or " ".join(str(error).split())
    return f"line {mark.line + 1}: {problem}" if mark is not None else str(problem)


_WIDTH = 96


@cache
def _dumper() -> type[yaml.SafeDumper]:
    import yaml

    base: type[yaml.SafeDumper] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

    class Dumper(base):  # type: ignore[misc, valid-type]  # which one is there is known now
        """Writes what both a reader of JSON's words and one of YAML 1.1 read as it was."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    def represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        style = None
        if not text.replace("\n", "").isprintable():
            style = '"'
        elif "\n" in text:
            style = "|"
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, represent)
    know_json(Dumper, also=base)
    return Dumper


def to_yaml(record: dict[str, Any]) -> str:
    r"""An object of JSON data as a YAML document, keys in the order given.

    Characters that nobody could see are written out.

    Args:
        record: Numbers are finite, and keys are text.

    Example:
        >>> print(to_yaml({"name": "ping", "tags": ["net", "no"], "text": "One.\nTwo."}), end="")
        name: ping
        tags:
        - net
        - 'no'
        text: |-
          One.
          Two.
    """
    import yaml

    text: str = yaml.dump(
        record, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=_WIDTH
    )
    if text.replace("\n", "").isprintable():
        return text
    return "".join(letter if letter == "\n" else _visible(letter) for letter in text)


def _visible(letter: str) -> str:
    """A character, or its escape in the double quotes in which all that hides stands."""
    if letter.isprintable():
        return letter
    code = ord(letter)
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"


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
"""Key order: what people review comes first. Nested keys keep the definition's order."""


def text_of(definition: ToolDefinition) -> bytes:
    """The file of a tool. Equal definitions have equal files."""
    # Through JSON, so that what is written is what the history holds.
    record = json.loads(json.dumps(definition.to_json()))
    ordered = {name: record[name] for name in _ORDER if name in record} | record
    return to_yaml(ordered).encode()


# Names.

_AS_IT_IS = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]{0,98}[a-z0-9_])?")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?")  # on Windows, with any ending
_LONGEST_STEM = 60
_MOST_BYTES = 120


def file_stem(tool_name: str) -> str:
    """The name of a tool's file, without its ending.

    A lower-case name that every file system accepts is used as it is. Any other is made
    readable, and the first digits of its digest tell it apart: from names that differ in case,
    accents or signs alone, also where the file system does not see the difference.

    Example:
        >>> file_stem("get_weather")
        'get_weather'
        >>> file_stem("Get Weather/v2"), file_stem("CON")
        ('get-weather-v2--a1f304ca2831', 'con--a3dbc4b644a9')
    """
    is_safe = _AS_IT_IS.fullmatch(tool_name) and not _RESERVED.fullmatch(tool_name)
    if is_safe and "--" not in tool_name and ".." not in tool_name:
        return tool_name
    return f"{_readable(tool_name)}--{_digest(tool_name)}"


def _digest(tool_name: str) -> str:
    """A suffix that distinguishes names with the same readable part."""
    return hashlib.sha256(tool_name.encode("utf-8", "backslashreplace")).hexdigest()[:12]


def _readable(tool_name: str) -> str:
    """Letters and digits in the form that all file systems keep, and ``-`` for all else."""
    plain = unicodedata.normalize("NFKD", tool_name[:1_000]).casefold()
    plain = unicodedata.normalize("NFKD", plain)
    letters = "".join(
        "" if unicodedata.combining(one) else one if one.isalnum() or one == "_" else "-"
        for one in plain
    )
    stem = re.sub("-+", "-", letters).strip("-")[:_LONGEST_STEM]
    stem = stem.encode()[:_MOST_BYTES].decode(errors="ignore")
    return stem.strip("-") or "tool"


# Edits by hand.

_SUFFIX = ".yaml"
_LARGEST = 4_000_000
"""More would keep the reader of YAML busy for minutes."""


def read_definition(content: bytes) -> ToolDefinition:
    """The definition in a file that somebody may have edited.

    Raises:
        DefinitionError: There is none; ``args`` hold all reasons.
    """
    if len(content) > _LARGEST:
        raise DefinitionError(
            f"it has {len(content):,} bytes; a tool that people edit has at most {_LARGEST:,}"
        )
    if has_markers(content):
        raise DefinitionError(
            "it holds what git could not merge; choose between the lines marked <<<<<<<, ======= "
            "and >>>>>>>"
        )
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise DefinitionError(f"it is not text in UTF-8 (byte {error.start})") from error
    record = from_yaml(text)
    if faults := record_faults(record):
        refused = DefinitionError(faults[0])
        refused.args = faults
        raise refused
    try:
        definition = ToolDefinition.from_json(record)
        _ = definition.digest
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DefinitionError(f"it is not a definition of a tool: {error}") from error
    return definition


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolFiles:
    """The folder ``tools/``.

    Attributes:
        folder: The store's folder.
    """

    folder: Folder

    def of(self, name: str) -> Path:
        """The file of a tool."""
        return self.folder.tools / f"{file_stem(name)}{_SUFFIX}"

    def shows(self, content: bytes | None, definition: ToolDefinition | None) -> bool:
        """Whether a file says what a definition says, in whatever words of YAML."""
        if content is None or definition is None:
            return content is None and definition is None
        if content == text_of(definition):
            return True
        try:
            return read_definition(content).digest == definition.digest
        except DefinitionError:
            return False

    def edits(self, library: Library) -> Iterator[tuple[Path, str]]:
        """Every file that is not as the store wrote it, and why it cannot be read, if it cannot."""
        names = sorted(one.name for one in library.all_definitions)
        files = {self.of(name): library[name].definition for name in names}
        with self.folder.translated(self.folder.tools):
            found = sorted(self.folder.tools.glob(f"*{_SUFFIX}"))
        for path in dict.fromkeys((*files, *found)):
            if path not in files and path.name[0] == ".":  # hidden ones belong to editors
                continue
            content = self.folder.content(path)
            if not self.shows(content, files.get(path)):
                yield path, _why_unusable(path, content)


def _why_unusable(path: Path, content: bytes | None) -> str:
    """Why what somebody made of a file cannot be read; empty where it can."""
    if path.is_symlink():  # of what it leads to nothing is told
        return "it is a link; put a copy of the file here"
    if content is None:
        return ""
    if not path.is_file():
        return "it is not a file; remove it"
    try:
        read_definition(content)
    except DefinitionError as error:
        return "; ".join(map(str, error.args))
    return ""
