"""Examples against the contract."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit.errors import DefinitionError
from agentkit.evolution.validation.report import FailedCheck, ProposedChange
from agentkit.evolution.validation.sameness import is_too_deep, shown_value
from agentkit.evolution.validation.texts import sequence
from agentkit.tools.definition import Example
from agentkit.tools.fit import fits
from agentkit.tools.validation import validate_arguments


def examples_fit(change: ProposedChange) -> Iterator[FailedCheck]:
    """New examples whose arguments or results do not fit the schema.

    That examples keep to the learned rules is asked by ``rules_valid``, which knows both.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> good = {"/examples/-": {"arguments": {"amount": 80, "people": 2}, "result": 40.0}}
        >>> list(examples_fit(rewrite("bill_split", good)))
        []
        >>> bad = {"/examples/-": {"arguments": {"amount": 80, "people": 0}, "result": 40.0}}
        >>> [found.field for found in examples_fit(rewrite("bill_split", bad))]
        ['examples[1]']
    """
    had = sequence(change.base.examples)
    for at, example in enumerate(sequence(change.candidate.examples)):
        if at < len(had) and had[at] is example:
            continue
        readable = isinstance(example, Example) and not is_too_deep(
            [example.arguments, example.result]
        )
        if readable and example not in had:
            problem = _problem(change, example)
            if problem:
                yield FailedCheck(
                    code="example_does_not_fit",
                    layer="semantic",
                    field=f"examples[{at}]",
                    message=problem,
                    advice="take examples from calls that were accepted",
                )


def _problem(change: ProposedChange, example: Example) -> str:
    signature = change.base.signature
    verdict = fits(example.arguments, signature.parameters)
    if verdict is not True:
        try:
            problems = validate_arguments(change.base, example.arguments)
        except DefinitionError as error:
            return f"whether it fits can not be told: {error}"
        if problems:
            return problems[0].rule
    shown = example.result is not None and example.is_whole and signature.result is not None
    if shown and fits(example.result, signature.result) is False:
        return f"its result {shown_value(example.result)} does not fit the result schema"
    return ""
