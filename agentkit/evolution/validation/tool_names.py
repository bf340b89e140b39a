"""Other tools: called by name, preferred to, or nearly copied."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from agentkit.evolution.validation.report import FailedCheck, ProposedChange, reason
from agentkit.evolution.validation.texts import (
    Edit,
    leaves,
    mapping,
    rules_of,
    sentences,
    sequence,
    text_or_empty,
)
from agentkit.library.derived import Snapshot
from agentkit.retrieval.words import terms
from agentkit.tools.tool import Tool

_TOKEN = re.compile(r"[A-Za-z0-9_]+(?:[.\-/:]+[A-Za-z0-9_]+)*")
_LOOKS_LIKE_CODE = re.compile(r"[_.\-/:]|[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_HOLDS_CODE = re.compile(r"_|[A-Za-z0-9][.\-/:]+[A-Za-z0-9]|[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
"""What stands in every text with a word that looks like code."""

_IS_CODE = re.compile(r"_|[a-z0-9][A-Z]")
"""Words with a hyphen are often ordinary ones (*check-in*), so that they must equal a name."""

_BEFORE_NAME = re.compile(
    r"\b(?:calls?|calling|invokes?|invoking|execute|trigger|tool|function|rufe|appelle[rz]?|llama)\s+$"
)
_AFTER_NAME = re.compile(r"\s+(?:tool|function|api|werkzeug|funktion|outil|herramienta)\b")
_MARKED = re.compile(
    r"`([^`\n]+)`"
    r"|\b(\w{2,})\("
    r"|\b(?:tool|function|werkzeug|funktion|outil|fonction|herramienta|funci[oó]n)\s+(?:(?:named|called|namens|nommée?|llamada)\s+)?[\"'«„“]?(\w+)"
    r"|\b(\w+)[\"'»“”]?\s+(?:tool|function|api|endpoint)\b"
    r"|[\"'“„«「『《](\w[\w .-]{1,60}\w)[\"'”“»」』》]",
    re.IGNORECASE,
)
_HOLDS_MARK = re.compile(
    r"[`(\"'“„«「『《]|tool|function|werkzeug|funktion|outil|fonction|herramienta|funci[oó]n|api"
    r"|endpoint",
    re.IGNORECASE,
)
"""What stands in every text with a word that ``_MARKED`` finds."""

_CALLED = re.compile(
    r"\b(?i:call(?:s|ing)?|invok(?:e|ing)|run(?:ning)?|trigger|execute|rufe?|aufrufen|appelle[rz]?"
    r"|llam[ae]r?)\s+(?:the\s+)?[`\"']?([A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+)"
    r"|(?:调用|呼び出|呼んで)\s*[`「\"']?([A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+)"
    r"|(?<![A-Za-z0-9_])([A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)++)\s?(?:を呼|を実行)"
)
"""What is said to be called, whether the library has it or not."""

_SENTENCES = frozenset({"summary", "usage_rule"})
_SENTENCE = re.compile(r"(?<=[.!?])\s+|[\u3002\uff01\uff1f]|\n+")
_CLAUSE = re.compile(
    r";\s*|\uff1b|,\s+(?=not\b)"
    r"|,?\s(?:and|but|while|whereas|und|et|y)\s(?=`?TOOL|for\b)"
)
_TOOL_THERE = (
    r"(?:for|to|when|if)\s(.{3,80}?),?\s(?:use|call|see|take|there is)\s`?TOOL`?(?: instead)?"
    r"|(?:use|see|take)\s`?TOOL`?\s(?:instead )?(?:for|to|when|if)\s(.{3,80})"
    r"|(?:not for\s.{3,60},?\s)?`?TOOL`?\s"
    r"(?:(?:is |are )?(?:there )?for|to|[a-z]{2,12}s(?=\s))\s?(.{3,80})"
    r"|(.{3,80}?)\s(?:is|are) (?:what|for|done by|done with|given by|found with|left to"
    r"|the (?:job|task|work|purpose) of) `?TOOL`?(?: is for| does| gives| finds| shows| lists)?"
    r"|(.{3,80}?)\s\((?:see|use|for (?:that|these|those|this):?(?: use| see)?) `?TOOL`?\)"
    r"|(?:not (?:suited |meant |made )?for|(?:do not|don't) use (?:it|this|this tool)"
    r" (?:for|to|when))\s(.{3,80}?)[,;:]?\s(?:use|see|call|take|there is)\s`?TOOL`?"
    r"(?: instead| for (?:that|it|them|these|those))?"
    r"|(?:für|um|zum|zur)\s(.{3,80}?),?\s(?:ist\s|gibt es\s|dient\s)?`?TOOL`?"
    r"(?:\s(?:verwenden|benutzen|nutzen|da|zuständig))?"
    r"|(?:pour|para)\s(.{3,80}?),?\s(?:utilise[rz]?|voir|usar?|use|usa|existe)\s`?TOOL`?"
    r"|(?:如需|若要|要|需要)?(.{2,40}?)[\uff0c,]?(?:请)?(?:使用|用)\s?`?TOOL`?"
    r"|(.{2,40}?)(?:には|は|場合は)[、]?\s?`?TOOL`?\s?を(?:使う|使用する|使います|使用します)"
)
_AWAY = re.compile(rf"(?:{_TOOL_THERE})$", re.IGNORECASE)
"""How a sentence says which tool is for something else; the groups are what that is."""

_FLOWS = re.compile(
    r"\b(?:then|first|next|before|after(?:wards)?|once|later|always|never|every|each|all|any|also"
    r"|automatically|immediately|right away|found|straight|must|should|results?|answers?|outputs?"
    r"|hits?|again|rest|better|best|prefer\w*|rather|zuerst|danach|dann|immer|jede\w*|ensuite"
    r"|toujours|luego|siempre)\b|后|立即|然后|再|每|先|总是|後|次に|常に|必ず",
    re.IGNORECASE,
)
"""Words by which a sentence orders calls, hands data on or compares: none tells tools apart."""

_STANDING_IN = "TOOL"
_WINDOW = 4
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolNames:
    """The names of a library's tools as ``spoken`` gives them.

    Attributes:
        spoken: Names by their words.
        first: The first words of names that have several.
    """

    spoken: Mapping[str, str]
    first: frozenset[str]


class _Names:
    """Works the names out once a library; see ``agentkit.library.derived``."""

    def build(self, library: Snapshot) -> ToolNames:
        return _tool_names({spoken(name): name for name in library.tools})

    def update(
        self, value: ToolNames, library: Snapshot, added: Sequence[Tool], removed: Collection[str]
    ) -> ToolNames:
        gone = {spoken(name) for name in removed if name not in library.tools}
        kept = {key: name for key, name in value.spoken.items() if key not in gone}
        return _tool_names(kept | {spoken(tool.name): tool.name for tool in added})


def _tool_names(names: Mapping[str, str]) -> ToolNames:
    return ToolNames(spoken=names, first=frozenset(n.split()[0] for n in names if " " in n))


NAMES = _Names()
"""The kind of derived value that ``Library.derived`` keeps the names under."""


def spoken(name: str) -> str:
    """A name as words: ``sendEmail`` and ``send_email`` are both ``send email``."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return " ".join(re.split(r"[\s_.\-/:]+", apart)).strip().casefold()


def no_other_tools(change: ProposedChange) -> Iterator[FailedCheck]:
    """Other tools of the library by name, and names of tools that do not exist.

    What a tool is for belongs to its own text; a text that names others moves calls between tools
    (or to one that an attacker brings). An order between tools is data: a ``CallBefore`` rule,
    whose tool the text may name then. Children of a composite may be named as well, and so may
    what the base names already.

    A sentence in one of the usual forms may say which tool of the library is for something else
    (``alternatives``): *To reserve a car, use cars_reserve.*

    A name that is an ordinary word counts only where it is marked as a name: in quotation marks or
    back-ticks, before ``(``, beside the word *tool*.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> list(no_other_tools(rewrite("calendar_create_event", {"rule": "Give day and start."})))
        []
        >>> pointing = rewrite("weather_now", {"rule": "Then call currency_convert."})
        >>> [(found.code, found.excerpt) for found in no_other_tools(pointing)]
        [('other_tool', 'currency_convert')]
    """
    names = change.library.derived(NAMES)
    allowed: set[str] | None = None
    for edit in change.edits:
        if edit.kind == "example":
            continue
        for word, known in dict.fromkeys(_named(edit.after, names)):
            allowed = allowed or _allowed(change)
            if spoken(word) not in allowed and word.casefold() not in change.known:
                if known and points_away(change, edit, word, known):
                    continue
                yield reason(
                    "other_tool",
                    "lexical",
                    edit,
                    word,
                    message=f"it names the tool {known}"
                    if known
                    else f"it says to call {word!r:.80}, which the library does not have",
                    advice="say what this tool does; state an order of tools as a call_before rule",
                )


def alternatives(change: ProposedChange) -> Iterator[str]:
    """The other tools that new texts say are for something else.

    It moves calls to these tools, so that a judge and a person are asked
    (``ValidationPolicy.comparing``).

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> pointing = "To reserve a car, use cars_reserve."
        >>> list(alternatives(rewrite("cars_search", {"rule": pointing})))
        ['cars_reserve']
    """
    names = change.library.derived(NAMES)
    for edit in change.edits:
        if edit.kind in _SENTENCES and _HOLDS_CODE.search(edit.after):
            for word, known in dict.fromkeys(_named(edit.after, names)):
                if known and known != change.base.name and points_away(change, edit, word, known):
                    yield known


def points_away(change: ProposedChange, edit: Edit, word: str, known: str) -> bool:
    """Whether each clause that names a tool says what else it is for, and nothing more.

    What else: no more of this tool's words than of the other's, and not those alone. So a text can
    not give this tool's own purpose away, nor send data or control on.
    """
    if edit.kind not in _SENTENCES:
        return False
    own = set(terms(" ".join((spoken(change.base.name), change.summaries[0]))))
    other = change.library[known].definition
    parts = [spoken(known), text_or_empty(other.description.summary)]
    its = set(terms(" ".join((*parts, *map(str, mapping(other.signature.properties))))))
    named = edit.after.replace(word, _STANDING_IN)
    for sentence in (part for part in _SENTENCE.split(named) if _STANDING_IN in part):
        clauses = (part for part in _CLAUSE.split(sentence) if _STANDING_IN in part)
        if not (_is_of(sentence, own, its) or all(_is_of(part, own, its) for part in clauses)):
            return False
    return True


def _is_of(clause: str, own: set[str], its: set[str]) -> bool:
    """Whether a clause says in a usual form what another tool is for, in words of that one."""
    match = _AWAY.match(clause.strip(" .`。"))
    if match is None or _FLOWS.search(clause):
        return False
    said = set(terms(" ".join(filter(None, match.groups()))))
    return len(said & own) <= len(said & its) and (not said & own or bool(said - own))


def _named(text: str, tools: ToolNames) -> Iterator[tuple[str, str]]:
    """Words of a text that name a tool, with the name; an unknown tool has none."""
    names = tools.spoken
    for word in _TOKEN.findall(text) if _HOLDS_CODE.search(text) else ():
        known = names.get(spoken(word)) if _LOOKS_LIKE_CODE.search(word) else None
        if known and (_IS_CODE.search(word) or word.casefold() == known.casefold()):
            yield word, known
    for match in _MARKED.finditer(text) if _HOLDS_MARK.search(text) else ():
        for word in filter(None, match.groups()):
            if known := names.get(spoken(word)):
                yield word, known
    yield from _spelled(text, tools)
    for match in _CALLED.finditer(text) if "_" in text else ():
        for word in filter(None, match.groups()):
            yield word, names.get(spoken(word), "")


def _spelled(text: str, tools: ToolNames) -> Iterator[tuple[str, str]]:
    """Names of two words and more, told as names: *the find slot tool*, *then call find slot*.

    Such names are often ordinary phrases (*prime factors*), which pass.
    """
    words = list(_WORD.finditer(text.casefold()))
    for start in (at for at, word in enumerate(words) if word.group() in tools.first):
        for end in range(start + 2, min(start + _WINDOW, len(words)) + 1):
            phrase = " ".join(word.group() for word in words[start:end])
            if known := tools.spoken.get(phrase):
                after = _AFTER_NAME.match(text, words[end - 1].end())
                before = _BEFORE_NAME.search(text[: words[start].start()].casefold())
                if after or before:
                    yield phrase, known


def _allowed(change: ProposedChange) -> set[str]:
    """Names that a text may hold: the tool's own, those of its parts and of what it must follow."""
    base, candidate = change.base, change.candidate
    allowed = [base.name, candidate.name, *mapping(base.signature.properties)]
    allowed += [child.name for child in sequence(base.signature.children)]
    allowed += [
        part
        for path in mapping(base.description.parameters)
        for part in re.split(r"[.\[\]]+", path)
    ]
    allowed += [
        rule.tool for rule in rules_of(candidate) if isinstance(getattr(rule, "tool", None), str)
    ]
    allowed += leaves([base.signature.parameters, base.signature.result, _values(base.examples)])
    return {spoken(name) for name in allowed}


def _values(examples: Any) -> list[Any]:
    return [[example.arguments, example.result] for example in sequence(examples)]


_FORMS = re.compile(
    r"call it only when the value of \S{1,80} is known from the user or from an earlier result;"
    r" otherwise ask for it\.|call it only when the request asks for what it does;"
    r" otherwise answer without it\.|(?:do not use it for this, which another tool does"
    r"|prefer it to a tool that does this, when both seem to fit): (.+)$"
)
"""The sentences with which the evidence proposer tells tools apart, and nothing else."""

_PREFERRED = re.compile(r"prefer it to a tool that does this, when both seem to fit: (.+)$")


def preferred_to(change: ProposedChange, sentence: str) -> str:
    """The tool to which a sentence prefers this one in the allowed form; empty for none.

    Two tools that calls confuse are told apart by saying what the other one is for (the evidence
    proposer does). The form is closed: a fixed sentence, and behind it the first sentence of the
    other tool's summary, word for word. It still moves calls from that tool to this one, which is
    why ``ValidationPolicy`` asks a judge and a person.

    Args:
        change: The change.
        sentence: A folded sentence of it.
    """
    match = _PREFERRED.match(sentence)
    if match is None:
        return ""
    return _whose_purpose(change, match.group(1))


def without_closed_forms(change: ProposedChange, text: str) -> str:
    """A folded text without the sentences that tell tools apart in closed forms.

    What such a form quotes must be what another tool says of itself.
    """
    found = _FORMS.search(text)
    if found is None or (found[1] and not _whose_purpose(change, found[1])):
        return text
    return f"{text[: found.start()]} {text[found.end() :]}"


def _whose_purpose(change: ProposedChange, said: str) -> str:
    """The other tool whose first sentence this is; empty for none."""
    for tool in change.library.definitions:
        purpose = next(sentences(text_or_empty(tool.description.summary)), "")
        if tool.name != change.base.name and purpose.rstrip(".") == said.rstrip("."):
            return tool.name
    return ""


def compares(change: ProposedChange) -> bool:
    """Whether a change sets its tool against another one in an allowed form."""
    return any(preferred_to(change, sentence) for _, sentence, _ in change.statements) or any(
        True for _ in alternatives(change)
    )


_ALIKE = 0.7
_LEAST_TERMS = 3
_FREQUENT = 200
"""A term of more tools than this tells none apart, and is skipped when looking for candidates."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SummaryTerms:
    """The terms of each tool's summary, and the tools of each term."""

    of_tool: Mapping[str, frozenset[str]]
    tools: Mapping[str, tuple[str, ...]]


class _Summaries:
    """Works the terms out once a library; see ``agentkit.library.derived``."""

    def build(self, library: Snapshot) -> SummaryTerms:
        return _indexed({name: _terms(tool) for name, tool in library.tools.items()})

    def update(
        self,
        value: SummaryTerms,
        library: Snapshot,
        added: Sequence[Tool],
        removed: Collection[str],
    ) -> SummaryTerms:
        changed = {tool.name: _terms(tool) for tool in added}
        gone = set(removed).union(changed)
        touched = set(chain(*changed.values(), *(value.of_tool.get(name, ()) for name in gone)))
        kept = {
            name: words
            for name, words in value.of_tool.items()
            if name not in gone or name in changed
        }
        of_tool = kept | changed
        fresh = {
            term: tuple(n for n in value.tools.get(term, ()) if n not in gone) for term in touched
        }
        for name, words in changed.items():
            for term in words:
                fresh[term] = (*fresh[term], name)
        return SummaryTerms(of_tool=of_tool, tools={**value.tools, **fresh})


SUMMARIES = _Summaries()
"""The kind of derived value that ``Library.derived`` keeps the terms under."""


def _terms(tool: Tool) -> frozenset[str]:
    return frozenset(terms(tool.definition.description.summary))


def _indexed(of_tool: Mapping[str, frozenset[str]]) -> SummaryTerms:
    tools: dict[str, list[str]] = {}
    for name, words in of_tool.items():
        for term in words:
            tools.setdefault(term, []).append(name)
    return SummaryTerms(
        of_tool=of_tool, tools={term: tuple(names) for term, names in tools.items()}
    )


def no_near_copy(change: ProposedChange) -> Iterator[FailedCheck]:
    """A summary that comes close to another tool's and so takes calls that belong there.

    Alike are summaries that share seven tenths of their terms (Jaccard). Two that were as close
    before may stay so: duplicates are the Tool Manager's business. Whether bystanders lose calls is
    measured by a gate; this sees the plain case before anything is run.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> list(no_near_copy(rewrite("weather_now", {"sentence": "One city at a time."})))
        []
        >>> near = {"summary": "Expected temperature in Celsius for each of the coming days."}
        >>> [found.message for found in no_near_copy(rewrite("weather_now", near))]
        ['it says nearly the same as the summary of weather_forecast']
    """
    before, after = change.summaries
    if before == after:
        return
    said, had = frozenset(terms(after)), frozenset(terms(before))
    for name, words in _closest(change, said):
        likeness = _jaccard(said, words)
        if likeness >= _ALIKE and likeness > _jaccard(had, words):
            yield FailedCheck(
                code="near_copy",
                layer="semantic",
                field="summary",
                message=f"it says nearly the same as the summary of {name}",
                advice="say what sets the tool apart",
                excerpt=after[:120],
            )
            return


def _closest(change: ProposedChange, said: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    if len(said) < _LEAST_TERMS:
        return
    summaries = change.library.derived(SUMMARIES)
    rare = [names for term in said if len(names := summaries.tools.get(term, ())) <= _FREQUENT]
    shared = Counter(chain.from_iterable(rare))
    for name, _ in shared.most_common(8):
        if name != change.base.name:
            yield name, summaries.of_tool[name]


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0
