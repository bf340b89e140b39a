"""Required look-ups: a value that has always come from another tool's result, and once did not."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from agentkit.evolution.mining.dataflow import RouteEvidence
from agentkit.evolution.proposals.evidence.lessons import Lesson, is_enough
from agentkit.evolution.proposals.evidence.observed import ObservedCall
from agentkit.evolution.proposals.evidence.stated_rules import Seen
from agentkit.evolution.proposals.evidence.vetoes import Trial, is_sound
from agentkit.tools.rules import CallBefore


def lookup_lessons(seen: Seen, routes: Collection[RouteEvidence]) -> Iterator[Lesson]:
    """Tools that must be called first, because a parameter is to come from their results.

    Learned when the parameter's values came from the other tool in enough successful episodes, when
    no accepted call got one from elsewhere (the user may know it), and when calls failed whose
    value came from nowhere.

    Args:
        seen: The tool with its calls.
        routes: Ways that data take between tools, found over successful episodes.
    """
    name = seen.definition.name
    for (producer, argument), support in sorted(_supports(name, routes).items()):
        rule = CallBefore(tool=producer, parameter=argument)
        if producer == name or support < seen.knobs.least_lookups:
            continue
        if rule in seen.definition.specification.rules:
            continue
        if not is_sound(rule, seen.definition, seen.library):
            continue
        trial = Trial(rule, seen.definition)
        if any(argument in c.arguments and trial.refuses(c) for c in seen.record.accepted):
            continue
        failed = [c for c in seen.record.calls if _failed_at(c, argument) and trial.refuses(c)]
        if is_enough(failed, seen.record, seen.knobs):
            basis = f"In {support:,} conversations that went well {argument} came from that result"
            yield Lesson.from_calls(failed, seen.record, basis=basis, rule=rule)


def _supports(consumer: str, routes: Collection[RouteEvidence]) -> Mapping[tuple[str, str], int]:
    """Episodes in which an argument came from a tool, the best route of each pair."""
    found: dict[tuple[str, str], int] = {}
    for one in routes:
        if one.route.consumer == consumer:
            pair = one.route.producer, one.route.argument
            found[pair] = max(found.get(pair, 0), one.support)
    return found


def _failed_at(call: ObservedCall, argument: str) -> bool:
    return not call.is_accepted and argument in call.blamed and argument in call.arguments
