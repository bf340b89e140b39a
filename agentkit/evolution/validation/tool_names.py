"""Other tools: called by name, or nearly copied.

The patterns stand in ``phrases/tool_names.txt``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from agentkit.evolution.validation.report import FailedCheck, ProposedChange, failed
from agentkit.evolution.validation.texts import (
    Edit,
    leaves,
    mapping,
    rules_of,
    sequence,
    text_or_empty,
)
from agentkit.evolution.validation.wording import pattern
from agentkit.library.derived import Snapshot
from agentkit.retrieval.words import terms


def _says(section: str) -> re.Pattern[str]:
    return pattern("tool_names", section)


# --- The names of a library's tools, as they are spoken ------------------------------------------


class _Names:
    """A library's names by their words, once a version (``agentkit.library.derived``)."""

    def build(self, library: Snapshot) -> Mapping[str, str]:
        return {spoken(name): name for name in library.tools}

    def update(
        self, _: Mapping[str, str], library: Snapshot, _added: object, _removed: object
    ) -> Mapping[str, str]:
        return self.build(library)


_NAMES = _Names()


@lru_cache(maxsize=100_000)
def spoken(name: str) -> str:
    """A name as words: ``sendEmail`` and ``send_email`` are both ``send email``."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return " ".join(re.split(r"[\s_.\-/:]+", apart)).strip().casefold()


# --- Which tools a text names --------------------------------------------------------------------


_TOKEN = re.compile(r"[A-Za-z0-9_]+(?:[.\-/:]+[A-Za-z0-9_]+)*")
_LOOKS_LIKE_CODE = re.compile(r"[_.\-/:]|[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_IS_CODE = re.compile(r"_|[a-z0-9][A-Z]")
"""Words with a hyphen are often ordinary ones (*check-in*), so that they must equal a name."""


def _named(text: str, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Words of a text that name a tool, with the name; an unknown tool has none."""
    for word in _TOKEN.findall(text):
        known = names.get(spoken(word)) if _LOOKS_LIKE_CODE.search(word) else None
        if known and (_IS_CODE.search(word) or word.casefold() == known.casefold()):
            yield word, known
    for word in _groups("marked", text):
        if known := names.get(spoken(word)):
            yield word, known
    for word in _groups("called", text) if "_" in text else ():
        yield word, names.get(spoken(word), "")


def _groups(section: str, text: str) -> Iterator[str]:
    return (word for match in _says(section).finditer(text) for word in match.groups() if word)


def _foreign(change: ProposedChange) -> Iterator[tuple[Edit, str, str]]:
    """The names of other tools that new texts bring, with the text and the tool."""
    names = change.library.derived(_NAMES)
    allowed: set[str] | None = None
    for edit in change.edits:
        if edit.kind != "example":
            for word, known in dict.fromkeys(_named(edit.after, names)):
                allowed = allowed or _allowed(change)
                if spoken(word) not in allowed and word.casefold() not in change.known:
                    yield edit, word, known


def _allowed(change: ProposedChange) -> set[str]:
    """Names that a text may hold: the tool's own, those of its parts and of what it must follow."""
    base, candidate = change.base, change.candidate
    paths = mapping(base.description.parameters)
    parts: list[object] = [
        *(base.name, candidate.name, *mapping(base.signature.properties)),
        *(child.name for child in sequence(base.signature.children)),
        *(part for path in paths for part in re.split(r"[.\[\]]+", path)),
        *(getattr(rule, "tool", None) for rule in rules_of(candidate)),
        *(base.signature.parameters, base.signature.result),
        *([one.arguments, one.result] for one in sequence(base.examples)),
    ]
    return {spoken(name) for part in parts for name in leaves(part)}


# --- What a text may say of them -----------------------------------------------------------------


_SENTENCE = re.compile(r"(?<=[.!?])\s+|[\u3002\uff01\uff1f]|\n+")
_STANDING_IN = "TOOL"


def no_other_tools(change: ProposedChange) -> Iterator[FailedCheck]:
    """Calls of other tools that a text orders, and names of tools that do not exist.

    An order in words moves calls to another tool, which an attacker may bring. An order between
    tools is data: a ``CallBefore`` rule, whose tool the text may name then. Children of a composite
    may be named as well, and so may what the base names already. Any other tool of the library may
    be named where no call is ordered.

    A name that is an ordinary word counts only where it is marked as a name: in quotation marks or
    back-ticks, before ``(``, beside the word *tool*.
    """
    for edit, word, known in _foreign(change):
        named = edit.after.replace(word, _STANDING_IN)
        said_so = [part for part in _SENTENCE.split(named) if _STANDING_IN in part]
        if not known or any(map(_says("orders").search, said_so)):
            reason = "other_tool" if known else "other_tool.unknown"
            yield failed(reason, field=edit.field, excerpt=word, found=word, known=known)


# --- A summary that comes close to another tool's ------------------------------------------------


_ALIKE = 0.7
_LEAST_TERMS = 3


def no_near_copy(change: ProposedChange) -> Iterator[FailedCheck]:
    """A summary that comes close to another tool's and so takes calls that belong there.

    Alike are summaries that share seven tenths of their terms (Jaccard). Two that were as close
    before may stay so: duplicates are the Tool Manager's business. Whether bystanders lose calls is
    measured by a gate; this sees the plain case before anything is run.
    """
    before, after = change.summaries
    said, had = _terms(after), _terms(before)
    if before == after or len(said) < _LEAST_TERMS:
        return
    for tool in change.library.definitions:
        its = _terms(text_or_empty(tool.description.summary))
        likeness = _jaccard(said, its)
        if likeness >= _ALIKE and tool.name != change.base.name and likeness > _jaccard(had, its):
            yield failed("near_copy", field="summary", excerpt=after, known=tool.name)
            return


@lru_cache(maxsize=100_000)
def _terms(text: str) -> frozenset[str]:
    return frozenset(terms(text))


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0
