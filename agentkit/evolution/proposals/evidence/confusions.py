"""Tools that are taken for each other, and tools that are called when nothing was to be called.

Both are told in words, as a rule on use. A text may not name another tool (a description that
steers calls to or from others is an attack that validation looks for), so the other one is told by
its purpose.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentkit.diagnosis.labelling import diagnose
from agentkit.episodes import Episode
from agentkit.evolution.proposals.evidence.lessons import EvidenceRules, Lesson, confidence
from agentkit.evolution.proposals.evidence.origins import of_definition, own
from agentkit.evolution.validation.report import TextOrigin
from agentkit.library.library import Library
from agentkit.messages import ToolCall
from agentkit.retrieval.cards import first_sentence
from agentkit.tools.definition import ToolDefinition

_LONGEST_PURPOSE = 160
_MOSTLY = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Misuse:
    """Which tools were called wrongly, and in whose place.

    Attributes:
        pairs: Ids of episodes by the tool called and the tool that was due.
        alone: Calls of tools in episodes in which no call was due in their place, with the
            episodes, by tool.
    """

    pairs: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    alone: dict[str, list[tuple[ToolCall, Episode]]] = field(
        default_factory=lambda: defaultdict(list)
    )


def misuse(episodes: Iterable[Episode], library: Library) -> Misuse:
    """The misuse that diagnoses show: a pair is one wrong and one missing tool in an episode."""
    found = Misuse()
    for episode in episodes:
        verdict = episode.verdict
        if verdict is None or verdict.passed or verdict.fault is not None:
            continue
        diagnosis = episode.diagnosis or diagnose(episode, library, verdict)
        about = [one for turn in diagnosis.turns for one in turn.attributions]
        spurious = {one.tool for one in about if one.label == "spurious_tool_call"}
        missing = {one.tool for one in about if one.label == "missing_tool_call" and one.tool}
        called = {call.name for call in episode.calls}
        wrong = {name for name in spurious & called if name in library} - missing
        if len(wrong) == 1 and len(missing) == 1:
            found.pairs[min(wrong), min(missing)].append(episode.episode_id)
        elif not missing:
            for name in wrong:
                call = next(call for call in episode.calls if call.name == name)
                found.alone[name].append((call, episode))
    return found


def confusion_lessons(
    found: Misuse, library: Library, knobs: EvidenceRules
) -> Iterator[tuple[str, Lesson]]:
    """A rule for each tool of a pair that is confused, with the name of its tool."""
    for (called, due), episodes in sorted(found.pairs.items()):
        if not _is_enough(episodes, knobs) or due not in library:
            continue
        purposes = _purposes(library[called].definition, library[due].definition, library)
        if purposes is None:
            continue
        of_called, of_due = purposes
        basis = "It was called where another tool was due"
        text = f"Do not use it for this, which another tool does: {of_due}"
        said = of_definition(text, library[due].definition, library)
        yield called, _lesson(text, episodes, basis, said)
        basis = "Another tool was called where this one was due"
        text = f"Requests for it are easily taken for this, which it does not do: {of_called}"
        said = of_definition(text, library[called].definition, library)
        yield due, _lesson(text, episodes, basis, said)


def abstention_lessons(
    found: Misuse, library: Library, knobs: EvidenceRules
) -> Iterator[tuple[str, Lesson]]:
    """For tools that are called though nothing was to be called: when to ask or to answer."""
    for name, cases in sorted(found.alone.items()):
        episodes = [episode.episode_id for _, episode in cases]
        if not _is_enough(episodes, knobs):
            continue
        invented = _invented(cases, library[name].definition)
        text = (
            f"Call it only when the value of {_listed(invented)} is known from the user or from "
            "an earlier result; otherwise ask for it."
            if invented
            else "Call it only when the request asks for what it does; otherwise answer without it."
        )
        yield name, _lesson(text, episodes, "It was called where no call was due", *own(text))


def _lesson(text: str, episodes: Iterable[str], basis: str, origin: TextOrigin) -> Lesson:
    distinct = tuple(dict.fromkeys(episodes))
    count = len(distinct)
    return Lesson(
        text=text,
        basis=basis,
        failures=count,
        episodes=distinct,
        confidence=confidence(count),
        origins=(origin,),
    )


def _is_enough(episodes: Iterable[str], knobs: EvidenceRules) -> bool:
    return len(set(episodes)) >= max(knobs.least_failures, knobs.least_episodes)


def _purposes(
    called: ToolDefinition, due: ToolDefinition, library: Library
) -> tuple[str, str] | None:
    """What both tools are for, in a sentence each; None when these do not tell them apart."""
    texts = tuple(_purpose(one) for one in (called, due))
    if not all(texts) or texts[0].casefold() == texts[1].casefold():
        return None
    words = {word.strip(".,;:()'\"`") for text in texts for word in text.split()}
    if any("_" in one.name and one.name in words for one in library.definitions):
        return None  # the sentence names a tool
    return texts[0], texts[1]


def _purpose(definition: ToolDefinition) -> str:
    sentence = " ".join(first_sentence(definition.description.summary).split()).rstrip(".")
    if not sentence or len(sentence) > _LONGEST_PURPOSE or definition.name in sentence:
        return ""
    lowered = sentence[:2].istitle() or sentence[1:2].islower()
    return f"{sentence[0].lower() if lowered else sentence[0]}{sentence[1:]}."


def _invented(
    cases: Iterable[tuple[ToolCall, Episode]], definition: ToolDefinition
) -> tuple[str, ...]:
    """Required parameters whose values were mostly taken from nowhere."""
    known: Mapping[str, list[bool]] = defaultdict(list)
    for call, episode in cases:
        said = " ".join([episode.request, *(result.text for result in episode.results)]).casefold()
        for name in definition.signature.required:
            if name in call.arguments:
                known[name].append(_is_said(call.arguments[name], said))
    return tuple(name for name, found in known.items() if found.count(False) > _MOSTLY * len(found))


def _is_said(value: Any, said: str) -> bool:
    if isinstance(value, bool) or value is None or not isinstance(value, str | int | float):
        return True  # it can not be told
    return str(value).casefold()[:200] in said


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
