"""``examine``: all checks over a catalogue, and what they found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentkit.errors import UsageError
from agentkit.evaluation.doctor.catalogue import Catalogue
from agentkit.evaluation.doctor.checks import (
    confusions,
    duplicates,
    missing_texts,
    names,
    poor_texts,
    refused,
    shared_texts,
    unclean_texts,
    undeclared,
    unused,
    weight,
)
from agentkit.evaluation.doctor.finding import SEVERITIES, Finding, Kind, Level, Proposal
from agentkit.evaluation.doctor.mends import merged
from agentkit.evaluation.doctor.provider_rules import REFUSALS
from agentkit.evaluation.doctor.weights import FIELDS, Weight, added_up


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One look at a catalogue.

    Attributes:
        run: The look.
        kinds: What it can find.
    """

    run: Callable[[Catalogue], Iterable[Finding]]
    kinds: tuple[Kind, ...]


CHECKS: tuple[Check, ...] = (
    Check(run=refused.refused, kinds=REFUSALS),
    Check(
        run=undeclared.undeclared,
        kinds=(
            undeclared.GHOST,
            undeclared.DANGLING,
            undeclared.UNTYPED,
            undeclared.UNTYPED_ITEMS,
            undeclared.OPEN_OBJECT,
            undeclared.REPEATED_VALUES,
            undeclared.UNTYPED_ENUM,
            undeclared.GENERATED,
            undeclared.UNTYPED_RESULT,
        ),
    ),
    Check(
        run=missing_texts.missing_texts,
        kinds=(missing_texts.NO_SUMMARY, missing_texts.NO_PARAMETER_TEXT),
    ),
    Check(
        run=poor_texts.poor_texts,
        kinds=(
            poor_texts.PLACEHOLDER,
            poor_texts.SAYS_BROKEN,
            poor_texts.ECHO,
            poor_texts.LONG,
            poor_texts.ECHO_PARAMETER,
            poor_texts.LONG_PARAMETER,
        ),
    ),
    Check(
        run=unclean_texts.unclean_texts,
        kinds=(
            unclean_texts.INVISIBLE,
            unclean_texts.MARKUP,
            unclean_texts.BLOB,
            unclean_texts.REPEATS,
            unclean_texts.BLANKS,
        ),
    ),
    Check(
        run=names.shadowing_names,
        kinds=(names.SAME_NAME, names.FOLDED_NAME, names.RESERVED_NAME, names.GENERIC_NAME),
    ),
    Check(run=shared_texts.shared_texts, kinds=(shared_texts.OPENING, shared_texts.SENTENCE)),
    Check(
        run=duplicates.duplicates,
        kinds=(duplicates.DUPLICATE, duplicates.NEAR_DUPLICATE, duplicates.SIBLINGS),
    ),
    Check(run=confusions.confusions, kinds=(confusions.UNFINDABLE, confusions.CONFUSED)),
    Check(run=weight.heavy_tools, kinds=(weight.UNAFFORDABLE, weight.HEAVY)),
    Check(run=unused.unused, kinds=(unused.ALWAYS_FAILS, unused.PASSED_OVER, unused.NEVER_USED)),
)
"""Every check, in the order in which they run."""

KINDS: dict[str, Kind] = {kind.code: kind for check in CHECKS for kind in check.kinds}
"""Everything that can be found, by code."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkup:
    """What was found in a catalogue.

    Attributes:
        catalogue: What was examined.
        weights: What each tool costs, the heaviest first.
        findings: The worst first, then in the order of the checks, then what costs most.
    """

    catalogue: Catalogue
    weights: tuple[Weight, ...]
    findings: tuple[Finding, ...]

    @property
    def tokens(self) -> int:
        """Prompt tokens of a request that offers every tool."""
        return sum(weight.tokens for weight in self.weights)

    @property
    def tokens_by_field(self) -> dict[str, int]:
        """The same by field."""
        return dict(added_up(self.weights))

    def grouped(self) -> Iterator[tuple[Kind, tuple[Finding, ...]]]:
        """Findings of a kind together, in the order of ``findings``."""
        groups: dict[str, list[Finding]] = {}
        for finding in self.findings:
            groups.setdefault(finding.kind.code, []).append(finding)
        for found in groups.values():
            yield found[0].kind, tuple(found)

    def proposals(self, level: Level) -> tuple[Proposal, ...]:
        """One proposal a tool, with everything of that level mended."""
        return merged(self.catalogue, self.findings, level=level)

    def to_json(self, *, limit: int | None = None) -> dict[str, Any]:
        """The checkup as a JSON object, without the definitions.

        Args:
            limit: Most findings of a kind; None for all.
        """
        groups = [found for _, found in self.grouped()]
        return {
            "tools": len(self.weights),
            "tokens": self.tokens,
            "tokens_by_field": self.tokens_by_field,
            "weights": [
                {
                    "tool": weight.tool,
                    "tokens": weight.tokens,
                    **dict(zip(FIELDS, weight.by_field, strict=True)),
                }
                for weight in self.weights
            ],
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
        tools: Names of the tools to report on; empty for all. Doubles and rivals are looked for
            among all tools in any case.

    Raises:
        UsageError: There is no such code, or no such tool.

    Example:
        >>> from agentkit.tools.definition import ToolDefinition
        >>> silent = ToolDefinition.from_schema("sync", "", {"properties": {"n": {}}})
        >>> found = examine(Catalogue.of([silent]), codes=["no_description", "untyped_parameter"])
        >>> [finding.kind.code for finding in found.findings]
        ['no_description', 'untyped_parameter']

    Cost: linear in the size of the definitions, but for the search for confused pairs, which
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
    order = {kind.code: at for at, kind in enumerate(KINDS.values())}
    found.sort(key=lambda one: _worst_first(one, order))
    weights = sorted(catalogue.weights.values(), key=lambda w: (-w.tokens, w.tool))
    return Checkup(catalogue=catalogue, weights=tuple(weights), findings=tuple(found))


def _worst_first(finding: Finding, order: Mapping[str, int]) -> tuple[object, ...]:
    """By severity, then kind by kind in the order of the checks, what costs most first."""
    kind = finding.kind
    severity = SEVERITIES.index(kind.severity)
    return severity, order[kind.code], -finding.tokens, finding.tools, finding.what


def _require(given: Sequence[str], known: Iterable[str], what: str, hint: str) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise UsageError(f"there is no {what} {', '.join(map(repr, unknown))}; {hint}")
