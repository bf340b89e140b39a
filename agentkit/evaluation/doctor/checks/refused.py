"""Schemas and names that providers refuse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentkit.evaluation.doctor.catalogue import Catalogue
from agentkit.evaluation.doctor.finding import Finding
from agentkit.evaluation.doctor.listing import listed
from agentkit.evaluation.doctor.provider_rules import (
    DEFAULT_PROVIDERS,
    PROVIDER_RULES,
    REFUSED_NAME,
    ProviderRule,
)
from agentkit.models.wire import WireNames
from agentkit.tools.definition import ToolDefinition

_SHOWN = 3


def refused(catalogue: Catalogue) -> Iterator[Finding]:
    """Every rule of the providers asked for, on every tool; a fault that several share is one."""
    providers = catalogue.providers or DEFAULT_PROVIDERS
    by_kind: dict[str, list[ProviderRule]] = {}
    for rule in PROVIDER_RULES:
        if rule.provider in providers:
            by_kind.setdefault(rule.kind.code, []).append(rule)
    wire_names = WireNames(catalogue.library.tools)
    for definition in catalogue.definitions:
        for rules in by_kind.values():
            yield from _found(definition, rules, wire_names)


def _found(
    definition: ToolDefinition, rules: Sequence[ProviderRule], wire_names: WireNames
) -> Iterator[Finding]:
    broken = [(rule, places) for rule in rules if (places := tuple(rule.search(definition)))]
    if not broken:
        return
    places = tuple(dict.fromkeys(place for _, found in broken for place in found))
    who = ", ".join(rule.provider for rule, _ in broken)
    what = f"{listed(places, shown=_SHOWN)} ({who})"
    kind = broken[0][0].kind
    if kind is REFUSED_NAME:
        what = f"{what}, sent as {wire_names.encode(definition.name)!r}"
    yield Finding(kind=kind, tools=(definition.name,), what=what, where=places)
