"""What the Tool Manager asks of a candidate."""

from __future__ import annotations

from dataclasses import dataclass

from agentkit.errors import UsageError


@dataclass(frozen=True, kw_only=True, slots=True)
class InsertPolicy:
    """The knobs of InsertTool (CoCoDA, Algorithm 3). The defaults are the strict ones.

    Attributes:
        allow_primitives: Take a bound ``Tool`` that calls no other tool, as code given by a
            person. Text and definitions without a program are refused whatever this says.
        allow_revisions: Take a candidate whose name stands for another tool as its next revision.
        allow_without_examples: Take a candidate that has no worked call.
        run_undeclared: Run tools live that declare no effects, on the caller's word that they are
            pure. By default they are answered from their worked calls, as effectful ones are.
        probe_contracts: Try a pure candidate on generated arguments too, and reject it when one
            that its own preconditions allow breaks a child's precondition or its own promise.
        probes: Generated arguments to try, in the check of contracts and for each possible
            duplicate.
        least_agreements: Calls with equal results that make two tools duplicates.
        description_similarity: How alike the words of two tools that behave alike must be to make
            them duplicates, from 0 to 1; see ``similarity``. A judge is asked below it.
        compared: Tools of the same signature that a candidate is compared with, the most alike
            in words first.
        mappings: Ways to map parameters of one tool to those of another that are tried.
        most_examples: Worked calls that one tool keeps; further ones are not moved in a merge.
        most_bytes: Largest definition that is taken as data, in bytes of its canonical JSON; a text
            is bounded by ``CompositeLimits.source_bytes``.
        tolerance: How far numbers in results may differ, as in ``is_close`` of the language.
        seconds: Longest time that trying one candidate may take.
        runs: Most runs of the candidate, its children and possible duplicates, all together.
        child_calls: Most calls of tools in all these runs.
        attempts: How often the candidate is checked again when another writer was faster.
    """

    allow_primitives: bool = False
    allow_revisions: bool = False
    allow_without_examples: bool = False
    run_undeclared: bool = False
    probe_contracts: bool = True
    probes: int = 12
    least_agreements: int = 3
    description_similarity: float = 0.25
    compared: int = 8
    mappings: int = 24
    most_examples: int = 64
    most_bytes: int = 262_144
    tolerance: float = 1e-9
    seconds: float = 10.0
    runs: int = 1_000
    child_calls: int = 20_000
    attempts: int = 10

    def __post_init__(self) -> None:
        counts = ("least_agreements", "compared", "mappings", "most_examples", "most_bytes", "runs")
        for name in (*counts, "seconds", "child_calls", "attempts"):
            if not getattr(self, name) > 0:
                raise UsageError(f"InsertPolicy.{name} must be positive, got {getattr(self, name)}")
        if not 0 <= self.description_similarity <= 1:
            raise UsageError(
                "InsertPolicy.description_similarity is between 0 and 1, got "
                f"{self.description_similarity}"
            )
        if self.probes < 0 or self.tolerance < 0:
            raise UsageError("InsertPolicy.probes and .tolerance are 0 or more")
