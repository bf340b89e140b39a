"""Other tools: called by name, preferred to, or nearly copied."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from agentkit.evolution.validation.report import FailedCheck, ProposedChange, failed
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

# --- The names of a library's tools, and the terms of their summaries, worked out once -----------


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolWords:
    """By which words the tools of a library are known.

    Attributes:
        spoken: Names by their words, as ``spoken`` gives them.
        first: The first words of names that have several.
        terms: The terms of each tool's summary.
        tools: The tools of each term.
    """

    spoken: Mapping[str, str]
    first: frozenset[str]
    terms: Mapping[str, frozenset[str]]
    tools: Mapping[str, tuple[str, ...]]


class _Words:
    """Works the words out once a library; see ``agentkit.library.derived``."""

    def build(self, library: Snapshot) -> ToolWords:
        nothing = ToolWords(spoken={}, first=frozenset(), terms={}, tools={})
        return self.update(nothing, library, list(library.tools.values()), ())

    def update(
        self, value: ToolWords, library: Snapshot, added: Sequence[Tool], removed: Collection[str]
    ) -> ToolWords:
        new = {tool.name: frozenset(terms(tool.definition.description.summary)) for tool in added}
        gone = {name for name in removed if name not in library.tools}
        names = {key: name for key, name in value.spoken.items() if name not in gone}
        names |= {spoken(name): name for name in new}
        touched: dict[str, dict[str, None]] = {}
        for name in (*sorted(gone), *new):
            for term in value.terms.get(name, frozenset()) | new.get(name, frozenset()):
                touched.setdefault(term, {})[name] = None
        tools = {
            term: (
                *(name for name in value.tools.get(term, ()) if name not in changed),
                *(name for name in changed if term in new.get(name, ())),
            )
            for term, changed in touched.items()
        }
        kept = {name: said for name, said in value.terms.items() if name not in gone}
        return ToolWords(
            spoken=names,
            first=frozenset(name.split()[0] for name in names if " " in name),
            terms=kept | new,
            tools={**value.tools, **tools},
        )


WORDS = _Words()
"""The kind of derived value that ``Library.derived`` keeps the words under."""


def spoken(name: str) -> str:
    """A name as words: ``sendEmail`` and ``send_email`` are both ``send email``."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return " ".join(re.split(r"[\s_.\-/:]+", apart)).strip().casefold()


# --- Which tools a text names --------------------------------------------------------------------


_TOKEN = re.compile(r"[A-Za-z0-9_]+(?:[.\-/:]+[A-Za-z0-9_]+)*")
_LOOKS_LIKE_CODE = re.compile(r"[_.\-/:]|[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
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
_CALLED = re.compile(
    r"\b(?i:call(?:s|ing)?|invok(?:e|ing)|run(?:ning)?|trigger|execute|rufe?|aufrufen|appelle[rz]?"
    r"|llam[ae]r?)\s+(?:the\s+)?[`\"']?([A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+)"
    r"|(?:调用|呼び出|呼んで)\s*[`「\"']?([A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+)"
    r"|(?<![A-Za-z0-9_])([A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)++)\s?(?:を呼|を実行)"
)
"""What is said to be called, whether the library has it or not."""

_WINDOW = 4
_WORD = re.compile(r"\w+")


def _named(text: str, tools: ToolWords) -> Iterator[tuple[str, str]]:
    """Words of a text that name a tool, with the name; an unknown tool has none."""
    names = tools.spoken
    for word in _TOKEN.findall(text):
        known = names.get(spoken(word)) if _LOOKS_LIKE_CODE.search(word) else None
        if known and (_IS_CODE.search(word) or word.casefold() == known.casefold()):
            yield word, known
    for match in _MARKED.finditer(text):
        for word in filter(None, match.groups()):
            if known := names.get(spoken(word)):
                yield word, known
    yield from _spelled(text, tools)
    for match in _CALLED.finditer(text) if "_" in text else ():
        for word in filter(None, match.groups()):
            yield word, names.get(spoken(word), "")


def _spelled(text: str, tools: ToolWords) -> Iterator[tuple[str, str]]:
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


def _foreign(change: ProposedChange) -> Iterator[tuple[Edit, str, str]]:
    """The names of other tools that new texts bring, with the text and the tool."""
    names = change.library.derived(WORDS)
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
_ORDERS = re.compile(
    r"\b(?:then|first|next|before|after(?:wards)?|later|always|never|automatically|immediately"
    r"|right away|straight|must|should|again|better|best|prefer\w*|rather|zuerst|danach|dann|immer"
    r"|ensuite|toujours|luego|siempre)\b"
    r"|后|立即|然后|再|每|先|总是|後|次に|常に|必ず|调用|呼[びんぶ]"
    r"|^(?!(?:for|to|when|if|not|do not)\b).*"
    r"\b(?:call(?:s|ed|ing)?|invok\w+|run|trigger\w*|execut\w+)\b"
    r"|\b(?:pass|hand|send|feed|forward|chain|pipe)\w*\b.*\b(?:to|into|with|through)\b.*TOOL",
    re.IGNORECASE,
)
"""Words by which a sentence orders calls or compares tools."""

_HANDS_ON = re.compile(
    r"\b(?:each|every|all|any|once|also|found|results?|answers?|outputs?|hits?|rest|jede\w*)\b",
    re.IGNORECASE,
)
"""Words by which a sentence about use hands data on to another tool."""

_CLAUSE = re.compile(r"[;,:]\s|\s(?:and|but|while|whereas|und|et|y)\s")
_STANDING_IN = "TOOL"
_BARE = frozenset(terms("TOOL use see take"))


def no_other_tools(change: ProposedChange) -> Iterator[FailedCheck]:
    """Calls of other tools that a text orders, and names of tools that do not exist.

    A text that names others moves calls between tools (or to one that an attacker brings). An
    order between tools is data: a ``CallBefore`` rule, whose tool the text may name then. Children
    of a composite may be named as well, and so may what the base names already. Any other tool of
    the library may be named where no call is ordered; that waits (``names_others``).

    A name that is an ordinary word counts only where it is marked as a name: in quotation marks or
    back-ticks, before ``(``, beside the word *tool*.
    """
    for edit, word, known in _foreign(change):
        if not known or _orders_calls(change, edit, word, known):
            reason = "other_tool" if known else "other_tool.unknown"
            yield failed(reason, field=edit.field, excerpt=word, found=word, known=known)


def names_others(change: ProposedChange) -> Iterator[str]:
    """The other tools of the library that new texts name.

    It moves calls to these tools, so that a judge and a person are asked
    (``ValidationPolicy.comparing``).

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> pointing = "To reserve a car, use cars_reserve."
        >>> list(names_others(rewrite("cars_search", {"rule": pointing})))
        ['cars_reserve']
    """
    return (known for _, _, known in _foreign(change) if known)


def _orders_calls(change: ProposedChange, edit: Edit, word: str, known: str) -> bool:
    """Whether a sentence with the name orders calls, or gives this tool's own purpose away.

    It does the latter with more of this tool's words than of the other's, or with those alone.
    """
    named = edit.after.replace(word, _STANDING_IN)
    said_so = [part for part in _SENTENCE.split(named) if _STANDING_IN in part]
    if any(map(_ORDERS.search, said_so)):
        return True
    if edit.kind == "parameter":
        return False
    other = change.library[known].definition
    own = _terms_of(change.base.name, change.summaries[0])
    parts = map(str, mapping(other.signature.properties))
    its = _terms_of(known, text_or_empty(other.description.summary), *parts)
    for sentence in said_so:
        clause = next(part for part in _CLAUSE.split(sentence) if _STANDING_IN in part)
        said = _terms_of(clause, "") - _BARE or _terms_of(sentence, "") - _BARE
        is_own = len(said & own) > len(said & its) or bool(said and said <= own)
        if _HANDS_ON.search(sentence) or is_own:
            return True
    return False


def _terms_of(name: str, *texts: str) -> set[str]:
    return set(terms(" ".join((spoken(name), *texts))))


_FORMS = re.compile(
    r"call it only when the value of \S{1,80} is known from the user or from an earlier result;"
    r" otherwise ask for it\.|call it only when the request asks for what it does;"
    r" otherwise answer without it\.|(?:do not use it for this, which another tool does"
    r"|(prefer it) to a tool that does this, when both seem to fit): (.+)$"
)
"""The sentences with which the evidence proposer tells tools apart, and nothing else."""


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
    match = _FORMS.match(sentence)
    return _whose_purpose(change, match[2]) if match and match[1] else ""


def without_closed_forms(change: ProposedChange, text: str) -> str:
    """A folded text without the sentences that tell tools apart in closed forms.

    What such a form quotes must be what another tool says of itself.
    """
    found = _FORMS.search(text)
    if found is None or (found[2] and not _whose_purpose(change, found[2])):
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
    """Whether a change sets its tool against another one in an allowed form, or names one."""
    preferred = (preferred_to(change, sentence) for _, sentence, _ in change.statements)
    return any(preferred) or any(names_others(change))


# --- A summary that comes close to another tool's ------------------------------------------------


_ALIKE = 0.7
_LEAST_TERMS = 3
_FREQUENT = 200
"""A term of more tools than this tells none apart, and is skipped when looking for candidates."""


def no_near_copy(change: ProposedChange) -> Iterator[FailedCheck]:
    """A summary that comes close to another tool's and so takes calls that belong there.

    Alike are summaries that share seven tenths of their terms (Jaccard). Two that were as close
    before may stay so: duplicates are the Tool Manager's business. Whether bystanders lose calls is
    measured by a gate; this sees the plain case before anything is run.
    """
    before, after = change.summaries
    said, had = frozenset(terms(after)), frozenset(terms(before))
    if before == after or len(said) < _LEAST_TERMS:
        return
    known = change.library.derived(WORDS)
    sharing: Iterable[tuple[str, ...]] = (known.tools.get(term, ()) for term in said)
    shared = Counter(chain.from_iterable(names for names in sharing if len(names) <= _FREQUENT))
    for name, _ in shared.most_common(8):
        likeness, before_it = (_jaccard(words, known.terms[name]) for words in (said, had))
        if name != change.base.name and likeness >= _ALIKE and likeness > before_it:
            yield failed("near_copy", field="summary", excerpt=after, known=name)
            return


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0
