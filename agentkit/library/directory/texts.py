"""The text of a tool's file: YAML or JSON, always in the same order."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
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
_LEAST_WIDTH = 40
_LONGEST_ROW = 72
_LONGEST_KEY = 1_000  # YAML looks no further for the colon behind a key
_STEP = "  "

_WORDS_WITH_A_MEANING = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_FIRST = re.compile(r"[^\W\d]|[$^/(]")
_NOT_PLAIN = re.compile(r": |:$| #|\s$")
_NOT_PLAIN_IN_ROW = re.compile(r"[,\[\]{}:?#&*!|>'\"%@`]")
_SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[^\sa-z])")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def to_yaml(record: dict[str, Any]) -> str:
    r"""An object of JSON data as a YAML document, keys in the order given.

    Args:
        record: Numbers are finite, and keys are text.

    Example:
        >>> print(to_yaml({"name": "ping", "tags": ["net", "no"], "text": "One.\nTwo."}), end="")
        name: ping
        tags: [net, "no"]
        text: |-
          One.
          Two.
    """
    return "\n".join(_lines(record, "")) + "\n"


def _lines(value: dict[str, Any] | list[Any], indent: str) -> list[str]:
    """The lines of a collection that is not empty, each with its indentation."""
    inner = indent + _STEP
    lines: list[str] = []
    if isinstance(value, dict):
        for name, item in value.items():
            key = _key(name)
            if len(key) > _LONGEST_KEY:
                lines.append(f"{indent}? {key}")
                key = ""
            if (short := _short(item, inner)) is not None:
                lines.append(f"{indent}{key}: {short}")
            else:
                lines.append(f"{indent}{key}:")
                lines += _lines(item, inner)
        return lines
    for item in value:
        if (short := _short(item, inner)) is not None:
            lines.append(f"{indent}- {short}")
        else:
            first, *rest = _lines(item, inner)
            lines += [f"{indent}- {first.removeprefix(inner)}", *rest]
    return lines


def _short(value: Any, indent: str) -> str | None:
    """A scalar, or a collection that fits in the row; None for any other."""
    if isinstance(value, dict):
        return None if value else "{}"
    if isinstance(value, list):
        if not value:
            return "[]"
        return _row(value) if all(not isinstance(item, dict | list) for item in value) else None
    return _text(value, indent) if isinstance(value, str) else _number(value)


def _row(items: list[Any]) -> str | None:
    """Single words and numbers side by side; a line for each sentence is easier to review."""
    if any(isinstance(item, str) and " " in item for item in items):
        return None
    words = [_word(item) if isinstance(item, str) else _number(item) for item in items]
    row = f"[{', '.join(words)}]"
    return row if len(row) <= _LONGEST_ROW else None


def _number(value: float | None) -> str:
    text = json.dumps(value)
    # Without the point, YAML 1.1 takes 1e-05 for text.
    return text if "." in text or not isinstance(value, float) else text.replace("e", ".0e")


def _key(text: str) -> str:
    return text if _is_plain(text) and len(text) <= _WIDTH else _quoted(text)


def _word(text: str) -> str:
    """A text in a row."""
    return text if _is_plain(text) and not _NOT_PLAIN_IN_ROW.search(text) else _quoted(text)


@lru_cache(maxsize=4_096)
def _is_plain(text: str) -> bool:
    """Whether a text is taken for that text without quotes."""
    return (
        _FIRST.match(text) is not None
        and text.isprintable()
        and _NOT_PLAIN.search(text) is None
        and text.lower() not in _WORDS_WITH_A_MEANING
    )


def _text(text: str, indent: str) -> str:
    """A text as a value: bare, in quotes, or in lines of this indentation."""
    width = max(_WIDTH - len(indent), _LEAST_WIDTH)
    if len(text) <= width and "\n" not in text:
        return text if _is_plain(text) else _quoted(text)
    if "\n" in text and all(_fits_in_line(line, width) for line in text.split("\n")):
        return _block(text, indent)
    return _quoted_in_lines(text, indent)


def _fits_in_line(line: str, width: int) -> bool:
    """Whether nothing of a line would be lost, hidden, or off the screen in a block."""
    return not line or (len(line) <= width and not line.isspace() and line.isprintable())


def _block(text: str, indent: str) -> str:
    body = text.rstrip("\n")
    if not body:
        return _quoted(text)
    after = len(text) - len(body)
    head = "|" + (str(len(_STEP)) if text[0] in " \n" else "") + ("-", "", "+")[min(after, 2)]
    shown = [*body.split("\n"), *[""] * (after - 1)]
    return "\n".join([head, *(f"{indent}{line}" if line else "" for line in shown)])


def _quoted(text: str) -> str:
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(letter: str) -> str:
    """A character in double quotes; what nobody could see is written out."""
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter.isprintable():
        return letter
    code = ord(letter)
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\u{code:04x}" if code > 0xFF else f"\\x{code:02x}"


def _quoted_in_lines(text: str, indent: str) -> str:
    """A long text in double quotes, a line for a sentence: a backslash ends each but the last."""
    pieces: list[str] = []
    for line in re.split(r"(?<=\n)", text):
        *sentences, last = _SENTENCE_END.split("".join(map(_escaped, line)))
        pieces += [*(f"{sentence} " for sentence in sentences), *([last] if last else [])]
    # Spaces at the start of a line count for nothing, unless they are escaped.
    lines = [f"\\{piece}" if piece.startswith(" ") else piece for piece in pieces]
    return '"' + f"\\\n{indent}".join(["", *lines]) + '"'


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
