"""``examine``: all checks over a catalogue, and what they found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentkit.errors import UsageError
from agentkit.evaluation.doctor.catalogue import Catalogue
from agentkit.evaluation.doctor.checks import CHECKS
from agentkit.evaluation.doctor.findings import KINDS, SEVERITIES, Finding, Kind


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkup:
    """What was found in a catalogue.

    Attributes:
        catalogue: What was examined.
        weights: Prompt tokens of each tool's full schema, the heaviest first.
        findings: The worst first, then in the order of the checks, then what costs most.
    """

    catalogue: Catalogue
    weights: Mapping[str, int]
    findings: tuple[Finding, ...]

    @property
    def tokens(self) -> int:
        """Prompt tokens of a request that offers every tool."""
        return sum(self.weights.values())

    def grouped(self) -> Iterator[tuple[Kind, tuple[Finding, ...]]]:
        """Findings of a kind together, in the order of ``findings``."""
        groups: dict[str, list[Finding]] = {}
        for finding in self.findings:
            groups.setdefault(finding.kind.code, []).append(finding)
        for found in groups.values():
            yield found[0].kind, tuple(found)

    def to_json(self, *, limit: int | None = None) -> dict[str, Any]:
        """The checkup as a JSON object, without the definitions.

        Args:
            limit: Most findings of a kind; None for all.
        """
        groups = [found for _, found in self.grouped()]
        return {
            "tools": len(self.weights),
            "tokens": self.tokens,
            "weights": [{"tool": name, "tokens": n} for name, n in self.weights.items()],
            "counts": {found[0].kind.code: len(found) for found in groups},
            "findings": [one.to_json() for found in groups for one in found[:limit]],
        }


def examine(
    catalogue: Catalogue, *, codes: Sequence[str] = (), tools: Sequence[str] = ()
) -> Checkup:
    """Look at a catalogue; no model is asked and nothing is changed.

    Args:
        catalogue: The tools and what is known of them.
        codes: Codes of ``KINDS`` to look for; empty for all. Checks that find none of them are
            not run.
        tools: Names of the tools to report on; empty for all. Near duplicates and rivals are looked
            for among all tools in any case.

    Raises:
        UsageError: There is no such code, or no such tool.

    Example:
        >>> from agentkit.tools.definition import ToolDefinition
        >>> silent = ToolDefinition.from_schema("sync", "", {"properties": {"n": {}}})
        >>> found = examine(Catalogue.of([silent]), codes=["no_description", "untyped_parameter"])
        >>> [finding.kind.code for finding in found.findings]
        ['no_description', 'untyped_parameter']

    Cost: linear in the size of the definitions, except for the search for confused pairs, which
    retrieves once or more for each tool.
    """
    _require(codes, KINDS, "check", "agentkit.evaluation.doctor.KINDS lists them")
    _require(tools, catalogue.library.tools, "tool", "names are those of the library")
    if tools:
        catalogue = replace(catalogue, only=frozenset(tools))
    wanted = set(codes or KINDS)
    checks = [check for check in CHECKS if wanted.intersection(k.code for k in check.kinds)]
    found = [
        finding
        for check in checks
        for finding in check.run(catalogue)
        if finding.kind.code in wanted
    ]
    order = {code: at for at, code in enumerate(KINDS)}

    def worst_first(finding: Finding) -> tuple[object, ...]:
        kind = finding.kind
        severity = SEVERITIES.index(kind.severity)
        return severity, order[kind.code], -finding.tokens, finding.tools, finding.what

    weights = {one.name: catalogue.tokens[one.name] for one in catalogue.definitions}
    heaviest = sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))
    return Checkup(
        catalogue=catalogue,
        weights=dict(heaviest),
        findings=tuple(sorted(found, key=worst_first)),
    )


def _require(given: Sequence[str], known: Iterable[str], what: str, hint: str) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise UsageError(f"there is no {what} {', '.join(map(repr, unknown))}; {hint}")
