"""How a step of InsertTool ends the procedure: caught in one place and returned as a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agentkit.errors import SourceProblem
from agentkit.evolution.insertion.outcome import Rejected, RejectionCode, Witness

_LONGEST = 2_000  # characters of an explanation, which may quote the candidate


class Refused(Exception):  # noqa: N818 - a signal inside this package, returned as a value
    """A step found a reason to reject the candidate.

    Attributes:
        rejected: The reason.
    """

    def __init__(self, rejected: Rejected) -> None:
        self.rejected = rejected
        super().__init__(str(rejected))


def refuse(
    code: RejectionCode,
    name: str,
    explanation: str,
    advice: str,
    *,
    problems: Iterable[SourceProblem] = (),
    witness: Witness | None = None,
) -> Refused:
    """The signal to raise; see ``Rejected`` for the parts."""
    return Refused(
        Rejected(
            code=code,
            name=name,
            explanation=_cut(explanation),
            advice=advice,
            problems=tuple(problems),
            witness=witness,
        )
    )


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\u2026"


def refuse_source(name: str, problems: Iterable[SourceProblem]) -> Refused:
    """The signal for a text or a program that the language or the children do not allow."""
    found = tuple(problems)
    codes = {REJECTION_OF_FAULT.get(problem.code, "outside_language") for problem in found}
    code = codes.pop() if len(codes) == 1 else "outside_language"
    first = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return refuse(code, name, f"{first.message}{more}", first.advice, problems=found)


REJECTION_OF_FAULT: Mapping[str, RejectionCode] = {
    "unknown_tool": "unknown_child",
    "missing_child": "unknown_child",
    "changed_child": "changed_child",
    "unbound_child": "unbound_child",
    "recursive_call": "cycle",
    "argument_type": "type_mismatch",
    "result_type": "type_mismatch",
    "annotation": "type_mismatch",
    "example": "bad_example",
    "unpinned_call": "children_mismatch",
    "uncalled_pin": "children_mismatch",
    "effects": "effects_mismatch",
    "parameters": "type_mismatch",
    "condition": "bad_contract",
    "cycle": "cycle",
}
"""By code of ``SourceProblem`` or ``LibraryFault``; any other is ``outside_language``."""
