"""YAML as API descriptions use it: the JSON subset of YAML 1.2, through PyYAML's safe loader.

PyYAML reads YAML 1.1, where ``on`` is true, ``1:30`` is ninety and ``2024-01-01`` a date. Here
plain scalars are what YAML 1.2's core schema says, and keys are always text, so that the response
``200:`` is ``"200"``. Tags that make Python objects are unknown to the safe loader.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from agentkit.errors import DefinitionError, MissingExtraError
from agentkit.reading import LIMIT_VARIABLE, MAX_DEPTH, value_limit
from agentkit.tools.sources.openapi.json_data import MAX_NODES

if TYPE_CHECKING:
    import yaml

_LEAST_VALUES = 50_000  # a value of YAML takes ten times as long as one of JSON
_STRING = "tag:yaml.org,2002:str"
_MERGE = "tag:yaml.org,2002:merge"
_RESOLVERS = (
    ("tag:yaml.org,2002:null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("tag:yaml.org,2002:int", r"[-+]?(0|[1-9][0-9]*)|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "tag:yaml.org,2002:float",
        r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+",
        list("-+.0123456789"),
    ),
    (_MERGE, r"<<", ["<"]),
)


def load_yaml(text: str) -> Any:
    """The one document in a YAML text.

    Raises:
        MissingExtraError: PyYAML is not installed.
        DefinitionError: The text is no YAML, or its aliases stand for too much or for themselves.
    """
    try:
        import yaml
    except ImportError as error:
        raise MissingExtraError(
            "An API description written as YAML",
            package="pyyaml",
            install='pip install "agentkit-evolve[openapi]"',
        ) from error
    try:
        _check_events(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise _neither(error) from error
    loader = _loader()(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check(node)
        return loader.construct_document(node)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise _neither(error) from error
    finally:
        loader.dispose()


def _neither(error: Exception) -> DefinitionError:
    told = " ".join(str(error).split())[:300]
    return DefinitionError(f"the text is neither JSON nor YAML: {told}")


def _check_events(text: str) -> None:
    """Count values and levels before nodes of them are built, each of half a kilobyte."""
    import yaml

    most = value_limit(len(text), least=_LEAST_VALUES)
    count = levels = 0
    for event in yaml.parse(text, Loader=_loader()):
        count += isinstance(event, yaml.NodeEvent)
        levels += isinstance(event, yaml.CollectionStartEvent)
        levels -= isinstance(event, yaml.CollectionEndEvent)
        if levels > MAX_DEPTH:
            raise DefinitionError(
                f"the YAML text is nested too deeply, deeper than {MAX_DEPTH} levels"
            )
        if count > most:
            raise DefinitionError(
                f"{len(text):,} characters of YAML hold more than {most:,} values; a file that "
                f"you trust is read with {LIMIT_VARIABLE}=10 in the environment"
            )


@cache
def _loader() -> Any:
    import yaml

    # C's scanner is ten times as fast and is there in nearly every wheel.
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    made: Any = type("_Loader", (base,), {"yaml_implicit_resolvers": {}})
    for tag, pattern, first in _RESOLVERS:
        made.add_implicit_resolver(tag, re.compile(rf"^(?:{pattern})$"), first)
    return made


def _check(root: yaml.Node) -> None:
    """Count what the aliases stand for before anything is built, and make keys text."""
    sizes: dict[int, int] = {}
    if _size(root, sizes, set()) > MAX_NODES:
        raise DefinitionError(
            f"the YAML text stands for more than {MAX_NODES:,} values once its aliases are "
            "written out; write what is shared under components and use $ref"
        )


def _size(node: Any, sizes: dict[int, int], open_nodes: set[int]) -> int:
    known = sizes.get(id(node))
    if known is not None:
        return known
    if id(node) in open_nodes:
        raise DefinitionError("an alias of the YAML text holds itself; write recursion as $ref")
    open_nodes.add(id(node))
    parts: list[Any] = []
    if node.id == "mapping":
        for key, item in node.value:
            if key.id == "scalar" and key.tag != _MERGE:
                key.tag = _STRING
            parts += [key, item]
    elif node.id == "sequence":
        parts = node.value
    size = 1 + sum(_size(part, sizes, open_nodes) for part in parts)
    open_nodes.discard(id(node))
    sizes[id(node)] = size
    return size
