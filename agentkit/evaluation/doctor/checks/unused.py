"""Tools that the stored episodes never used, or never with success."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit.evaluation.doctor.catalogue import Catalogue
from agentkit.evaluation.doctor.finding import Finding, Kind
from agentkit.evaluation.doctor.usage import Usage

_FEWEST_EPISODES = 20
_FEWEST_CALLS = 3

ALWAYS_FAILS = Kind(
    code="always_fails",
    severity="error",
    title="failed at every call in the stored episodes",
    why="The model keeps trying it, and gets nothing.",
    advice="Read the rule that was broken: a text may be misleading, or the tool broken.",
)
PASSED_OVER = Kind(
    code="passed_over",
    severity="warning",
    title="found for requests, and never called",
    why="The retriever thinks that it fits, the model does not: its words promise something else.",
    advice="Say when to use it and when not; or take it out.",
)
NEVER_USED = Kind(
    code="never_used",
    severity="note",
    title="neither found nor called in the stored episodes",
    why="It takes part in every search, and helped in none.",
    advice="Take it out, or see with 'agentkit search' which requests find it.",
)


def unused(catalogue: Catalogue) -> Iterator[Finding]:
    """Tools that always fail; with enough episodes, also those that nobody called."""
    usage = catalogue.usage
    if usage is None:
        return
    is_enough = usage.episodes >= _FEWEST_EPISODES and usage.calls > 0
    for definition in catalogue.definitions:
        name = definition.name
        called = usage.called.get(name, 0)
        if called >= _FEWEST_CALLS and not usage.succeeded.get(name) and usage.failures.get(name):
            yield _failing(name, usage)
        elif not called and is_enough:
            yield _uncalled(catalogue, name, usage)


def _failing(name: str, usage: Usage) -> Finding:
    rule, times = max(usage.failures[name].items(), key=lambda pair: (pair[1], pair[0]))
    what = f"{usage.called[name]:,} calls, none with a result; {times:,} times {rule}"
    return Finding(kind=ALWAYS_FAILS, tools=(name,), what=what)


def _uncalled(catalogue: Catalogue, name: str, usage: Usage) -> Finding:
    shown = usage.shown.get(name, 0)
    kind = PASSED_OVER if shown else NEVER_USED
    found = f"found for {shown:,} of them" if shown else "found for none of them"
    return Finding(
        kind=kind,
        tools=(name,),
        what=f"not called in {usage.episodes:,} episodes, {found}",
        tokens=catalogue.weights[name].tokens,
    )
