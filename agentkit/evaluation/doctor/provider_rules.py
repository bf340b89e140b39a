"""Restrictions of providers as data: one table, and the check that reads it.

Each rule names the page or the report that it comes from. Providers change their rules without
notice; the table was made from what was published in 2026, and each line can be dropped or added
without touching code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentkit.evaluation.doctor.catalogue import KINDS, Catalogue, Finding, Kind, listed
from agentkit.evaluation.doctor.schemas import Part, parts, type_names
from agentkit.models.wire import WireNames
from agentkit.tools.definition import ToolDefinition

Search = Callable[[ToolDefinition], Iterator[str]]
"""Yields the places of a definition that break a rule, each in a few words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProviderRule:
    """One rule of one provider.

    Attributes:
        provider: The provider.
        kind: What breaking it is called, how bad it is and what to do.
        search: Finds what breaks it.
        source: Where it is written.
    """

    provider: str
    kind: Kind
    search: Search
    source: str


_OPENAI_FUNCTIONS = "https://platform.openai.com/docs/api-reference/chat/create, FunctionObject"
_OPENAI_ROOT = "https://github.com/langchain-ai/langchainjs/issues/9804"
_OPENAI_ITEMS = "https://github.com/streamnative/streamnative-mcp-server/issues/26"
_CLAUDE_TOOLS = "https://platform.claude.com/docs/en/agents-and-tools/tool-use/define-tools"
_CLAUDE_ROOT = "https://github.com/anthropics/claude-code/issues/27337"
_CLAUDE_KEYS = "https://github.com/anthropics/claude-code/issues/79418"
_GEMINI_FUNCTIONS = (
    "https://cloud.google.com/vertex-ai/generative-ai/docs/reference/nodejs/1.1.0/vertexai/"
    "functiondeclaration"
)
_GEMINI_SCHEMA = "https://ai.google.dev/api/caching#Schema"
_GEMINI_TYPE = "https://github.com/zed-industries/zed/issues/53919"
_GEMINI_ITEMS = "https://github.com/NousResearch/hermes-agent/pull/69924"

_GEMINI_KEYWORDS_TEXT = """
type format title description nullable enum maxItems minItems properties required
minProperties maxProperties minLength maxLength pattern example anyOf propertyOrdering
default items minimum maximum
"""
GEMINI_KEYWORDS = frozenset(_GEMINI_KEYWORDS_TEXT.split())
GEMINI_FORMATS: Mapping[str, frozenset[str]] = {
    "string": frozenset({"enum", "date-time"}),
    "number": frozenset({"float", "double"}),
    "integer": frozenset({"int32", "int64"}),
}


def _name_like(pattern: str) -> Search:
    accepted = re.compile(pattern)

    def search(definition: ToolDefinition) -> Iterator[str]:
        if not accepted.fullmatch(definition.name):
            yield repr(definition.name)

    return search


def _root_has(*keywords: str) -> Search:
    def search(definition: ToolDefinition) -> Iterator[str]:
        root = definition.signature.parameters
        yield from (f"{key} at the top" for key in keywords if key in root)

    return search


def _part_is(test: Callable[[Part], str | None]) -> Search:
    def search(definition: ToolDefinition) -> Iterator[str]:
        for part in parts(definition.signature.parameters):
            problem = test(part)
            if problem:
                yield f"{problem} at {part.path}" if part.path else f"{problem} at the top"

    return search


def _keys_like(pattern: str) -> Search:
    accepted = re.compile(pattern)

    def search(definition: ToolDefinition) -> Iterator[str]:
        names = definition.signature.properties
        yield from (repr(name) for name in names if not accepted.fullmatch(name))

    return search


def _array_without_items(part: Part) -> str | None:
    return "array" if "array" in type_names(part.schema) and "items" not in part.schema else None


def _gemini_keyword(part: Part) -> str | None:
    found = sorted(part.schema.keys() - GEMINI_KEYWORDS)
    return listed(found) if found else None


def _gemini_type(part: Part) -> str | None:
    if isinstance(part.schema.get("type"), list):
        return "several types"
    values = part.schema.get("enum")
    if values and not all(isinstance(value, str) for value in values):
        return "allowed values that are not strings"
    found = part.schema.get("format")
    known = (GEMINI_FORMATS.get(name, frozenset()) for name in type_names(part.schema))
    is_known = found is None or any(found in formats for formats in known)
    return None if is_known else f"format {found}"


_NAMES = r"[a-zA-Z0-9_-]{1,64}"
_CLAUDE_NAMES = r"[a-zA-Z0-9_-]{1,128}"
_GEMINI_NAMES = r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}"
_KEYS = r"[a-zA-Z0-9_.-]{1,64}"


def _rule(provider: str, code: str, search: Search, source: str) -> ProviderRule:
    return ProviderRule(provider=provider, kind=KINDS[code], search=search, source=source)


PROVIDER_RULES: tuple[ProviderRule, ...] = (
    _rule("openai", "refused_name", _name_like(_NAMES), _OPENAI_FUNCTIONS),
    _rule(
        "openai", "refused_root", _root_has("oneOf", "anyOf", "allOf", "enum", "not"), _OPENAI_ROOT
    ),
    _rule("openai", "refused_array", _part_is(_array_without_items), _OPENAI_ITEMS),
    _rule("anthropic", "refused_name", _name_like(_CLAUDE_NAMES), _CLAUDE_TOOLS),
    _rule("anthropic", "refused_root", _root_has("oneOf", "anyOf", "allOf"), _CLAUDE_ROOT),
    _rule("anthropic", "refused_parameter_name", _keys_like(_KEYS), _CLAUDE_KEYS),
    _rule("gemini", "refused_name", _name_like(_GEMINI_NAMES), _GEMINI_FUNCTIONS),
    _rule("gemini", "refused_array", _part_is(_array_without_items), _GEMINI_ITEMS),
    _rule("gemini", "refused_keyword", _part_is(_gemini_keyword), _GEMINI_SCHEMA),
    _rule("gemini", "refused_type", _part_is(_gemini_type), _GEMINI_TYPE),
)
"""Every rule."""

REFUSALS: tuple[Kind, ...] = tuple(dict.fromkeys(rule.kind for rule in PROVIDER_RULES))
"""The kinds the rules can find."""


def refused(catalogue: Catalogue) -> Iterator[Finding]:
    """Every rule, on every tool; a fault that several rules share is one finding."""
    by_kind: dict[str, list[ProviderRule]] = {}
    for rule in PROVIDER_RULES:
        by_kind.setdefault(rule.kind.code, []).append(rule)
    wire_names = WireNames(catalogue.library.tools)
    for definition in catalogue.definitions:
        for rules in by_kind.values():
            yield from _broken_rules(definition, rules, wire_names)


def _broken_rules(
    definition: ToolDefinition, rules: Sequence[ProviderRule], wire_names: WireNames
) -> Iterator[Finding]:
    broken = [(rule, places) for rule in rules if (places := tuple(rule.search(definition)))]
    if not broken:
        return
    places = tuple(dict.fromkeys(place for _, found in broken for place in found))
    who = ", ".join(rule.provider for rule, _ in broken)
    what = f"{listed(places, shown=3)} ({who})"
    kind = broken[0][0].kind
    if kind.code == "refused_name":
        what = f"{what}, sent as {wire_names.encode(definition.name)!r}"
    yield Finding(kind=kind, tools=(definition.name,), what=what, where=places)
