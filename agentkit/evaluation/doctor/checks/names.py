"""Names that stand in each other's way, or in that of somebody else."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterator, Sequence

from agentkit.composites.language import RESERVED
from agentkit.evaluation.doctor.catalogue import Catalogue, given_name
from agentkit.evaluation.doctor.finding import Finding, Kind
from agentkit.evaluation.doctor.listing import listed
from agentkit.retrieval.words import STOP_WORDS, terms
from agentkit.tools.definition import ToolDefinition

_PROVIDER_TOOLS_TEXT = """
bash code_execution code_interpreter computer file_search functions google_search
image_generation memory multi_tool_use parallel python str_replace_based_edit_tool
url_context web_fetch web_search
"""
PROVIDER_TOOLS = frozenset(_PROVIDER_TOOLS_TEXT.split())
"""Names of tools that providers run themselves, or use on the wire.

Sources: https://platform.openai.com/docs/guides/tools,
https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-reference,
https://ai.google.dev/gemini-api/docs/tools."""

_JSON_WORDS = frozenset({"true", "false", "null"})
_FEWEST_UNDER_ONE = 3
_PIECES = re.compile(r"[\W_]+")

SAME_NAME = Kind(
    code="same_name",
    severity="warning",
    title="one name for several tools",
    why="Only one of them can have it: the others were renamed when they came in, and the model "
    "sees NAME__2.",
    advice="Prefix each with its server, or drop the copies.",
)
FOLDED_NAME = Kind(
    code="alike_names",
    severity="warning",
    title="names that differ in case, separators or a plural only",
    why="Models mix them up, and so do file systems and command lines.",
    advice="Rename one, so that the difference is a word.",
)
GENERIC_NAME = Kind(
    code="generic_name",
    severity="note",
    title="one-word names that other names begin with",
    why="A model that means one of the longer names may stop at the short one.",
    advice="Say in the name what it works on.",
)
RESERVED_NAME = Kind(
    code="reserved_name",
    severity="warning",
    title="names that are taken elsewhere",
    why="A composite can not call a tool by a word of its language, and a provider's own tool of "
    "that name is in the way as soon as it is switched on.",
    advice="Prefix the name with its server.",
)


def shadowing_names(catalogue: Catalogue) -> Iterator[Finding]:
    """Names that are equal, nearly equal, too general, or reserved."""
    every = catalogue.library.definitions
    reported = {definition.name for definition in catalogue.definitions}
    for finding in (*_same(every), *_alike(every), *_generic(every)):
        if reported.intersection(finding.tools):
            yield finding
    for definition in catalogue.definitions:
        yield from _reserved(definition)


def _same(every: Sequence[ToolDefinition]) -> Iterator[Finding]:
    for name, group in _grouped(every, given_name):
        tools = tuple(definition.name for definition in group)
        what = f"{len(group):,} tools came in as {name!r}: {listed(tools)}"
        yield Finding(kind=SAME_NAME, tools=tools, what=what, where=("name",))


def _alike(every: Sequence[ToolDefinition]) -> Iterator[Finding]:
    for _, group in _grouped(every, lambda definition: _folded(given_name(definition))):
        names = dict.fromkeys(given_name(definition) for definition in group)
        if len(names) > 1:
            tools = tuple(definition.name for definition in group)
            what = f"{listed(list(names))} are the same words"
            yield Finding(kind=FOLDED_NAME, tools=tools, what=what, where=("name",))


def _folded(name: str) -> str:
    """The words of a name, whatever stands between them; small words count here."""
    small = [word for word in _PIECES.split(name.casefold()) if word in STOP_WORDS]
    return " ".join((*terms(name), *small))


def _generic(every: Sequence[ToolDefinition]) -> Iterator[Finding]:
    """One-word names below which there are several longer ones."""
    words = {given_name(definition): terms(given_name(definition)) for definition in every}
    beginnings: dict[str, list[str]] = {}
    for name, parts in words.items():
        if len(parts) > 1:
            beginnings.setdefault(parts[0], []).append(name)
    for definition in every:
        parts = words.get(definition.name, [])  # none for a copy, which another name was given
        longer = beginnings.get(parts[0], []) if len(parts) == 1 else []
        if len(longer) >= _FEWEST_UNDER_ONE:
            what = f"{definition.name} also begins {listed(longer, shown=3)}"
            yield Finding(kind=GENERIC_NAME, tools=(definition.name,), what=what, where=("name",))


def _reserved(definition: ToolDefinition) -> Iterator[Finding]:
    name = definition.name
    owner = _owner(name)
    if owner:
        what = f"{name!r} is {owner}"
        yield Finding(kind=RESERVED_NAME, tools=(name,), what=what, where=("name",))


def _owner(name: str) -> str:
    if keyword.iskeyword(name):
        return "a keyword of Python"
    if name in _JSON_WORDS:
        return "a value of JSON"
    if name in RESERVED:
        return "a function of the composite language"
    return "a tool of a provider's own" if name.casefold() in PROVIDER_TOOLS else ""


def _grouped(
    every: Sequence[ToolDefinition], key: Callable[[ToolDefinition], str]
) -> Iterator[tuple[str, list[ToolDefinition]]]:
    """Definitions that share a key, where at least two do; no key is no group."""
    groups: dict[str, list[ToolDefinition]] = {}
    for definition in every:
        groups.setdefault(key(definition), []).append(definition)
    yield from ((name, group) for name, group in groups.items() if name and len(group) > 1)
