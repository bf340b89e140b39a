"""YAML that people edited, as JSON data: what it says, and no more than JSON can hold.

Only ``true``, ``false``, ``null`` and decimal numbers are other than text, as in YAML 1.2: a person
who writes ``no`` or a date means these letters. Anchors are refused, because a few lines of them
can stand for gigabytes, and so is a key that stands twice, which a merge by hand often leaves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from agentkit.errors import DefinitionError, MissingExtraError

if TYPE_CHECKING:
    import yaml

_MOST_LEVELS = 300
"""Deeper data would break the parser rather than fail."""

_PREFIX = "tag:yaml.org,2002:"
_MEANINGS = (
    ("null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    ("bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")),
    ("int", re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789")),
    (
        "float",
        re.compile(
            r"^(?:[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?"
            r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
        ),
        list("-+.0123456789"),
    ),
)


def check_yaml_is_there() -> None:
    """Refuse to go on without PyYAML.

    Raises:
        MissingExtraError: It is not installed.
    """
    from importlib.util import find_spec

    if find_spec("yaml") is None:
        raise MissingExtraError(
            "a store of YAML files (one of JSON files, dir:PATH?format=json, does not)",
            package="pyyaml",
            install='pip install "agentkit-evolve[dir]"',
        )


def from_yaml(content: str) -> Any:
    """The data of a YAML document.

    Raises:
        DefinitionError: It is no YAML, or uses what JSON does not have.
    """
    import yaml

    loader = _loader()
    try:
        _check_events(yaml.parse(content, Loader=loader))
        return yaml.load(content, Loader=loader)  # noqa: S506 - a subclass of the safe loader
    except yaml.YAMLError as error:
        raise DefinitionError(_in_our_words(error)) from error
    except RecursionError as error:
        raise DefinitionError("it is nested too deeply") from error
    except ValueError as error:  # such as a number of thousands of digits
        raise DefinitionError(f"a value can not be read: {error}") from error


def _check_events(events: Iterable[yaml.Event]) -> None:
    """Refuse what would grow, or break the parser."""
    import yaml

    levels = 0
    for event in events:
        levels += isinstance(event, yaml.CollectionStartEvent)
        levels -= isinstance(event, yaml.CollectionEndEvent)
        if levels > _MOST_LEVELS:
            raise RecursionError
        if isinstance(event, yaml.AliasEvent):
            raise DefinitionError(
                f"'*{event.anchor}' stands for another part of the file; write that part out"
            )


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
                        f"line {line}: the key {key!r} is no text; put it in quotes"
                    )
                if key in found:
                    raise DefinitionError(f"line {line}: the key {key!r} stands here a second time")
                found[key] = self.construct_object(value_node, deep=deep)
            return found

    for name, pattern, first in _MEANINGS:
        Loader.add_implicit_resolver(_PREFIX + name, pattern, first)
    return Loader


def _in_our_words(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or " ".join(str(error).split())
    return f"line {mark.line + 1}: {problem}" if mark is not None else str(problem)
