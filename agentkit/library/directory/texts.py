"""The text of a tool's file: YAML or JSON, always in the same order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from agentkit.errors import DefinitionError, MissingExtraError, ReadingLimitError, UsageError
from agentkit.reading import check_yaml, know_json, read_json
from agentkit.tools.definition import ToolDefinition

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
    import yaml

    loader = _loader()
    try:
        check_yaml(content, loader, least=_LEAST, levels=_MOST_LEVELS)
        return yaml.load(content, Loader=loader)  # noqa: S506 - a subclass of the safe loader
    except yaml.YAMLError as error:
        raise DefinitionError(_in_our_words(error)) from error
    except ReadingLimitError as error:
        raise DefinitionError(str(error)) from error
    except RecursionError as error:
        raise DefinitionError("it is nested too deeply") from error
    except ValueError as error:  # such as a number of thousands of digits
        raise DefinitionError(f"a value cannot be read: {error}") from error


@cache
def _loader() -> type[yaml.SafeLoader]:
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


@dataclass(frozen=True, kw_only=True, slots=True)
class TextForm:
    """One way to write tools down.

    Attributes:
        name: ``yaml`` or ``json``.
    """

    name: str

    @property
    def suffix(self) -> str:
        """The suffix of its files."""
        return f".{self.name}"

    def check(self) -> None:
        """Refuse to go on without what it needs.

        Raises:
            MissingExtraError: PyYAML is not installed.
        """
        if self.name == "yaml" and find_spec("yaml") is None:
            raise MissingExtraError(
                "a store of YAML files (one of JSON files, dir:PATH?format=json, does not)",
                package="pyyaml",
                install='pip install "agentkit-evolve[dir]"',
            )

    def text_of(self, definition: ToolDefinition) -> bytes:
        """The file of a tool. Equal definitions have equal files."""
        # Through JSON, so that what is written is what the history holds.
        record = json.loads(json.dumps(definition.to_json()))
        ordered = {name: record[name] for name in _ORDER if name in record} | record
        if self.name == "yaml":
            return to_yaml(ordered).encode()
        return (json.dumps(ordered, indent=2, ensure_ascii=False) + "\n").encode()

    def read(self, text: str) -> Any:
        """The data in a file; raises ``DefinitionError`` with a reason."""
        return from_yaml(text) if self.name == "yaml" else _from_json(text)


def form_named(name: str) -> TextForm:
    """The form of that name.

    Raises:
        UsageError: There is none.
    """
    if name not in FORMS:
        raise UsageError(f"a store keeps its tools as yaml or json, not as {name!r}")
    return FORMS[name]


def _from_json(text: str) -> Any:
    try:
        return read_json(text, decode=_STRICT.decode)
    except DefinitionError:
        raise
    except json.JSONDecodeError as error:
        raise DefinitionError(f"line {error.lineno}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise DefinitionError(f"a value cannot be read: {error}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DefinitionError(f"the key {twice!r} is twice in one object")
    return found


def _no_number(word: str) -> None:
    raise DefinitionError(f"{word} is no JSON")


FORMS: Mapping[str, TextForm] = {name: TextForm(name=name) for name in ("yaml", "json")}

_STRICT = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_number)
