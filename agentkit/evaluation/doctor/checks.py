"""The doctor's checks: the table ``CHECKS``, each with the kinds that it can find.

The kinds themselves, with why each matters and what to do, are in ``kinds.toml``.
"""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeAlias

from agentkit._waiting import wait_for
from agentkit.composites.language import RESERVED
from agentkit.errors import UsageError
from agentkit.evaluation.doctor.catalogue import (
    KINDS,
    SEVERITIES,
    Catalogue,
    Finding,
    Kind,
    given_name,
    listed,
    quoted,
)
from agentkit.evaluation.doctor.provider_rules import REFUSALS, refused
from agentkit.evaluation.doctor.schemas import (
    Part,
    ghosts,
    is_empty_title,
    markup,
    parts,
    sentence_key,
    sentences,
    type_names,
)
from agentkit.messages import JsonObject
from agentkit.retrieval.cards import estimate_tokens, first_sentence
from agentkit.retrieval.cascade import CascadeRetriever
from agentkit.retrieval.words import STOP_WORDS, terms
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.patterns import invisible
from agentkit.tools.schema import references, resolve_local

Look: TypeAlias = Callable[[Catalogue], Iterable[Finding]]
"""One look at a catalogue."""

# --- types ----------------------------------------------------------------------------------------

_TYPING_TEXT = """
type enum const $ref anyOf oneOf allOf not if properties items prefixItems
additionalProperties
"""
_TYPING = frozenset(_TYPING_TEXT.split())
_SHAPING_TEXT = """
properties patternProperties additionalProperties propertyNames $ref anyOf oneOf allOf
"""
_SHAPING = frozenset(_SHAPING_TEXT.split())

# Gemini's refusal: https://github.com/Kilo-Org/kilocode/pull/11955


def _about(
    definition: ToolDefinition, code: str, what: str, *where: str, tokens: int = 0
) -> Finding:
    """A finding about one tool."""
    tools = (definition.name,)
    return Finding(kind=KINDS[code], tools=tools, what=what, where=where, tokens=tokens)


def _of_each(look: Callable[[Catalogue, ToolDefinition], Iterable[Finding]]) -> Look:
    """A look at every tool on its own."""
    return lambda catalogue: chain.from_iterable(look(catalogue, d) for d in catalogue.definitions)


def _types(_catalogue: Catalogue, definition: ToolDefinition) -> Iterator[Finding]:
    """Types, items, properties and references that are missing or wrong."""
    root = definition.signature.parameters
    every = tuple(parts(root))
    for code, look in _PART_SEARCHES.items():
        hits = [(part.path or "the arguments", text) for part in every if (text := look(part))]
        yield from _hits(definition, code, hits)
    lost = [one for one in dict.fromkeys(references(root)) if _leads_nowhere(root, one)]
    if lost:
        yield _about(definition, "dangling_reference", f"nothing is found at {listed(lost)}", *lost)
    if definition.signature.result is None:
        yield _about(definition, "untyped_result", "the result is not declared", "result")


def _hits(
    definition: ToolDefinition, code: str, hits: Sequence[tuple[str, str]]
) -> Iterator[Finding]:
    """A finding of places and what was found there, if anything was."""
    if hits:
        what = listed([text for _, text in hits])
        yield _about(definition, code, what, *dict.fromkeys(place for place, _ in hits))


def _untyped(part: Part) -> str:
    return part.path if part.role == "property" and not part.schema.keys() & _TYPING else ""


def _open_object(part: Part) -> str:
    is_value = part.role in {"property", "items"} and not part.path.endswith(".*")
    if not is_value or "object" not in type_names(part.schema):
        return ""
    return "" if any(part.schema.get(key) for key in _SHAPING) else part.path


def _untyped_items(part: Part) -> str:
    if "array" not in type_names(part.schema) or part.schema.get("prefixItems"):
        return ""
    items = part.schema.get("items")
    is_typed = isinstance(items, Mapping) and items.keys() & _TYPING
    return "" if is_typed else part.path or "the arguments"


def _ghost(part: Part) -> str:
    names = ghosts(part.schema)
    return f"{listed(names)}{f' in {part.path}' if part.path else ''}" if names else ""


def _generated(part: Part) -> str:
    return part.path if part.name and is_empty_title(part.schema, part.name) else ""


_PART_SEARCHES: Mapping[str, Callable[[Part], str]] = {
    "untyped_parameter": _untyped,
    "open_object": _open_object,
    "untyped_items": _untyped_items,
    "ghost_required": _ghost,
    "generated_titles": _generated,
}


def _leads_nowhere(root: JsonObject, reference: str) -> bool:
    """Whether a reference ends at no schema: at nothing, or at itself by way of others."""
    seen: set[str] = set()
    while reference not in seen:
        seen.add(reference)
        target = resolve_local(root, reference)
        if not isinstance(target, Mapping | bool):
            return True
        if isinstance(target, bool) or target.keys() - {"$ref", "description", "title"}:
            return False
        if not isinstance(target.get("$ref"), str):
            return False
        reference = target["$ref"]
    return True


# --- texts ----------------------------------------------------------------------------------------

LONGEST_DESCRIPTION = 1024
"""Characters; Azure OpenAI refuses longer function descriptions, see the Azure OpenAI reference,
``FunctionObject``; beyond that it is a matter of cost."""

FEWEST_SHARING = 3
"""Minimum number of tools for which an opening sentence counts as shared."""

_FILLERS_TEXT = """
tool function method api endpoint call execute perform run operation given specified provided
"""
_FILLERS = frozenset(_FILLERS_TEXT.split())
"""Words that say nothing of a tool."""

_BROKEN = re.compile(
    r"^\W*(deprecated|obsolete|do not use)\b"
    r"|\b(permanently unavailable|no longer (available|works|working|supported|maintained))\b"
    r"|\b(this|the) (tool|function|endpoint|api|method) (is|has been) "
    r"(deprecated|obsolete|unavailable|removed|discontinued|decommissioned)\b",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"[\W_]*+(todo|tbd|fixme|n/?a|none|null|undefined|description|no description( available| "
    r"provided)?|placeholder|lorem ipsum.*|x{3,}|string|text|test|foo|asdf)?[\W_]*",
    re.IGNORECASE | re.DOTALL,
)


def _missing_texts(_catalogue: Catalogue, definition: ToolDefinition) -> Iterator[Finding]:
    """Tools without a description, and parameters whose values do not speak for themselves."""
    if not definition.text.strip():
        yield _about(definition, "no_description", "there is no description", "summary")
    silent = [*filter(None, map(_silent, parts(definition.parameters_schema)))]
    if silent:
        places = (f"parameters.{path}" for path in silent)
        what = f"nothing is said of {listed(silent)}"
        yield _about(definition, "no_parameter_text", what, *places)


def _silent(part: Part) -> str:
    if part.role != "property" or part.path.startswith(("$defs.", "definitions.")):
        return ""
    text = part.schema.get("description")
    has_text = isinstance(text, str) and text.strip()
    speaks = part.schema.keys() & {"enum", "const", "$ref", "anyOf", "oneOf"}
    return "" if has_text or speaks else part.path


def _poor_texts(catalogue: Catalogue, definition: ToolDefinition) -> Iterator[Finding]:
    """Echoes of names, placeholders, texts that warn of their tool, and texts over a length."""
    text = definition.text.strip()
    opening = first_sentence(text)
    if text and _BROKEN.search(opening):
        what, tokens = f"it says {quoted(opening)}", catalogue.tokens[definition.name]
        yield _about(definition, "says_broken", what, "summary", tokens=tokens)
    if text and (verdict := _verdict(text, definition.name)):
        yield _about(definition, *verdict, "summary", tokens=estimate_tokens(text))
    texts = definition.description.parameters
    empty = [path for path, one in texts.items() if is_placeholder(one)]
    if empty:
        what = listed([f"{path} {quoted(texts[path], longest=40)}" for path in empty])
        places = (f"parameters.{path}" for path in empty)
        tokens = sum(estimate_tokens(texts[path]) for path in empty)
        yield _about(definition, "placeholder", what, *places, tokens=tokens)


def is_placeholder(text: str) -> bool:
    """Whether a text stands for one that was never written; no text at all is none."""
    return _PLACEHOLDER.fullmatch(text.strip() or "x") is not None


def _verdict(text: str, name: str) -> tuple[str, str] | None:
    """The problem of a description, if any."""
    if is_placeholder(text):
        return "placeholder", f"the description is {quoted(text)}"
    words = set(terms(text))
    if words and words <= set(terms(name)) | _FILLERS:
        return "echo_description", f"{quoted(text)} says no more than the name"
    if len(text) > LONGEST_DESCRIPTION:
        return "long_description", f"{len(text):,} characters: {quoted(text)}"
    return None


def _unclean_texts(_catalogue: Catalogue, definition: ToolDefinition) -> Iterator[Finding]:
    """Invisible characters, markup, repeated sentences."""
    for code, look in _TEXT_SEARCHES.items():
        hits = [
            (place, f"{listed(found, shown=3)} in {place}")
            for place, text in _texts(definition)
            if (found := list(dict.fromkeys(look(text))))
        ]
        yield from _hits(definition, code, hits)


def _texts(definition: ToolDefinition) -> Iterator[tuple[str, str]]:
    """Every text with its place."""
    description = definition.description
    yield "summary", description.summary
    for at, rule in enumerate(description.usage_rules):
        yield f"usage_rules[{at}]", rule
    for path, text in description.parameters.items():
        yield f"parameters.{path}", text


_TEXT_SEARCHES: Mapping[str, Callable[[str], Iterable[str]]] = {
    "invisible": lambda text: [f"U+{ord(one):04X}" for one in invisible(text)],
    "markup": markup,
}


def _shared_openings(catalogue: Catalogue) -> frozenset[str]:
    """The sentences, by their keys, that several descriptions begin with."""
    openings = Counter(
        sentence_key(sentence)
        for definition in catalogue.library.definitions
        for sentence in sentences(definition.description.summary)[:1]
    )
    return frozenset(key for key, count in openings.items() if key and count >= FEWEST_SHARING)


# --- names ----------------------------------------------------------------------------------------

_PROVIDER_TOOLS_TEXT = """
bash code_execution code_interpreter computer file_search functions google_search
image_generation memory multi_tool_use parallel python str_replace_based_edit_tool
url_context web_fetch web_search
"""
PROVIDER_TOOLS = frozenset(_PROVIDER_TOOLS_TEXT.split())
"""Names of tools that providers run themselves, or use on the wire.

Sources: https://platform.openai.com/docs/guides/tools,
https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-reference,
https://ai.google.dev/gemini-api/docs/tools."""

_PIECES = re.compile(r"[\W_]+")


def _names(catalogue: Catalogue) -> Iterator[Finding]:
    """Names that are equal, nearly equal, or reserved."""
    reported = {definition.name for definition in catalogue.definitions}
    same, alike = _grouped(catalogue, given_name), _grouped(catalogue, _folded)
    found = [
        ("same_name", tools, f"{len(tools):,} tools came in as {name!r}: {listed(tools)}")
        for name, tools in same
    ]
    for _, tools in alike:
        names = list(dict.fromkeys(given_name(catalogue.library[one].definition) for one in tools))
        if len(names) > 1:
            found.append(("alike_names", tools, f"{listed(names)} are the same words"))
    found = [one for one in found if reported.intersection(one[1])]
    for name in sorted(reported):
        if owner := _owner(name):
            found.append(("reserved_name", (name,), f"{name!r} is {owner}"))
    for code, tools, what in found:
        yield Finding(kind=KINDS[code], tools=tools, what=what, where=("name",))


def _grouped(
    catalogue: Catalogue, key: Callable[[ToolDefinition], str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Names of the tools that share a key, where at least two do; no key is not a group."""
    groups: dict[str, list[str]] = {}
    for definition in catalogue.library.definitions:
        groups.setdefault(key(definition), []).append(definition.name)
    yield from ((one, tuple(tools)) for one, tools in groups.items() if one and len(tools) > 1)


def _folded(definition: ToolDefinition) -> str:
    """The words of a name, whatever stands between them; small words count here."""
    name = given_name(definition)
    small = [word for word in _PIECES.split(name.casefold()) if word in STOP_WORDS]
    return " ".join((*terms(name), *small))


def _owner(name: str) -> str:
    if keyword.iskeyword(name):
        return "a keyword of Python"
    if name in {"true", "false", "null"}:
        return "a value of JSON"
    if name in RESERVED:
        return "a function of the composite language"
    return "a tool of a provider's own" if name.casefold() in PROVIDER_TOOLS else ""


# --- near duplicates and confusions ---------------------------------------------------------------

_LOOKED_AT = 10
_MOST_REQUESTS = 8
_FEWEST_WORDS, _MOST_WORDS = 3, 25


def _duplicates(catalogue: Catalogue) -> Iterator[Finding]:
    """Groups of tools that are alike; see ``agentkit.evaluation.doctor.catalogue``."""
    reported = {definition.name for definition in catalogue.definitions}
    for group in catalogue.alike:
        if not reported.intersection(group.tools):
            continue
        kind = KINDS["duplicate"] if group.likeness == 1 else KINDS["near_duplicate"]
        alike = "the same" if group.likeness == 1 else f"{group.likeness:.0%} alike"
        yield Finding(
            kind=KINDS["siblings"] if group.are_siblings else kind,
            tools=group.tools,
            what=f"{alike}: {listed(group.tools)}",
            where=("summary", "parameters"),
            tokens=sum(sorted(catalogue.tokens[name] for name in group.tools)[1:]),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Loss:
    """A request of a tool that another tool won; the tool ranked at ``place``, or was not found."""

    rival: str
    query: str
    place: int


def _confusions(catalogue: Catalogue) -> Iterator[Finding]:
    """Tools that stand behind others on requests which they should answer.

    Each tool is searched for with the first sentence of its description that no other tool begins
    with, the requests of its worked calls, and those of stored episodes in which it gave a result.
    Near duplicates are not rivals: no word tells them apart, and another check reports them.
    """
    shared = _shared_openings(catalogue)
    requests = {one.name: _requests(catalogue, one, shared) for one in catalogue.definitions}
    for name, losses in wait_for(_losses(catalogue, requests)).items():
        for rival in dict.fromkeys(loss.rival for loss in losses):
            against = [loss for loss in losses if loss.rival == rival]
            is_lost = len(against) == len(requests[name]) and not any(o.place for o in against)
            yield Finding(
                kind=KINDS["not_found"] if is_lost else KINDS["confused"],
                tools=(name, rival),
                what=_confusion(name, against[0]),
                where=("summary",),
            )


def _requests(
    catalogue: Catalogue, definition: ToolDefinition, shared: frozenset[str]
) -> tuple[str, ...]:
    """The requests the tool should be found for, each once."""
    own = (
        one for one in sentences(definition.description.summary) if sentence_key(one) not in shared
    )
    recorded = () if catalogue.usage is None else catalogue.usage.requests.get(definition.name, ())
    texts = (
        " ".join(next(own, "").split()[:_MOST_WORDS]),
        *(example.query for example in definition.examples),
        *recorded,
    )
    requests = (text for text in texts if len(text.split()) >= _FEWEST_WORDS)
    return tuple(dict.fromkeys(requests))[:_MOST_REQUESTS]


async def _losses(
    catalogue: Catalogue, requests: Mapping[str, Sequence[str]]
) -> dict[str, list[_Loss]]:
    retriever = CascadeRetriever(shortlist=_LOOKED_AT, offer=1, token_budget=10**9)
    losses: dict[str, list[_Loss]] = {}
    for number, (name, queries) in enumerate(requests.items(), start=1):
        own = catalogue.duplicates.get(name, frozenset((name,)))
        for query in queries:
            hits = (await retriever.retrieve(query, catalogue.library)).hits[:_LOOKED_AT]
            places = (at for at, hit in enumerate(hits, 1) if hit.definition.name in own)
            place = next(places, 0)
            is_draw = place > 0 and hits[place - 1].score == hits[0].score
            if hits and not is_draw:
                loss = _Loss(rival=hits[0].definition.name, query=query, place=place)
                losses.setdefault(name, []).append(loss)
        if catalogue.progress is not None:
            catalogue.progress(number, len(requests))
    return losses


def _confusion(name: str, loss: _Loss) -> str:
    """What was asked and which tool won, in one sentence."""
    stands = f"stands at {loss.place}" if loss.place else "is not found"
    return f"for {quoted(loss.query)} {name} {stands} behind {loss.rival}"


# --- cost and use ---------------------------------------------------------------------------------

DEFAULT_BUDGET = 1600
"""Tokens that ``CascadeRetriever`` lets cards and full schemas cost together, by default."""

_FEWEST_EPISODES = 20
_FEWEST_CALLS = 3


def _costs(catalogue: Catalogue, definition: ToolDefinition) -> Iterator[Finding]:
    """Tools above all of the default budget."""
    tokens = catalogue.tokens[definition.name]
    if tokens > DEFAULT_BUDGET:
        yield _about(definition, "unaffordable", f"{tokens:,} tokens", tokens=tokens)


def _use(catalogue: Catalogue, definition: ToolDefinition) -> Iterator[Finding]:
    """Tools that always fail; with enough episodes, also those that nobody called."""
    usage, name = catalogue.usage, definition.name
    if usage is None:
        return
    called, failures = usage.called.get(name, 0), usage.failures.get(name)
    if called >= _FEWEST_CALLS and not usage.succeeded.get(name) and failures:
        rule, times = max(failures.items(), key=lambda pair: (pair[1], pair[0]))
        what = f"{called:,} calls, none with a result; {times:,} times {rule}"
        yield _about(definition, "always_fails", what)
    elif not called and usage.episodes >= _FEWEST_EPISODES and usage.calls > 0:
        shown = usage.shown.get(name, 0)
        found = f"found for {shown:,} of them" if shown else "found for none of them"
        what = f"not called in {usage.episodes:,} episodes, {found}"
        code = "passed_over" if shown else "never_used"
        yield _about(definition, code, what, tokens=catalogue.tokens[name])


CHECKS: Mapping[Look, tuple[str, ...]] = {
    refused: tuple(kind.code for kind in REFUSALS),
    _of_each(_types): (
        *("ghost_required", "dangling_reference", "untyped_parameter", "untyped_items"),
        *("open_object", "generated_titles", "untyped_result"),
    ),
    _of_each(_missing_texts): ("no_description", "no_parameter_text"),
    _of_each(_poor_texts): ("placeholder", "says_broken", "echo_description", "long_description"),
    _of_each(_unclean_texts): ("invisible", "markup"),
    _names: ("same_name", "alike_names", "reserved_name"),
    _duplicates: ("duplicate", "near_duplicate", "siblings"),
    _confusions: ("not_found", "confused"),
    _of_each(_costs): ("unaffordable",),
    _of_each(_use): ("always_fails", "passed_over", "never_used"),
}
"""Every check with the codes of what it can find, in the order in which they run."""


# --- all of them ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkup:
    """The findings in a catalogue.

    Attributes:
        catalogue: What was examined.
        weights: Prompt tokens of each tool's full schema, the heaviest first.
        findings: The worst first, then in the order of the checks, then what costs most.
    """

    catalogue: Catalogue
    weights: Mapping[str, int]
    findings: tuple[Finding, ...]

    @property
    def tokens(self) -> int:
        """Prompt tokens of a request that offers every tool."""
        return sum(self.weights.values())

    def grouped(self) -> Iterator[tuple[Kind, tuple[Finding, ...]]]:
        """Findings of a kind together, in the order of ``findings``."""
        groups: dict[str, list[Finding]] = {}
        for finding in self.findings:
            groups.setdefault(finding.kind.code, []).append(finding)
        for found in groups.values():
            yield found[0].kind, tuple(found)

    def to_json(self) -> dict[str, Any]:
        """The checkup as a JSON object, without the definitions."""
        groups = [found for _, found in self.grouped()]
        return {
            "tools": len(self.weights),
            "tokens": self.tokens,
            "weights": [{"tool": name, "tokens": n} for name, n in self.weights.items()],
            "counts": {found[0].kind.code: len(found) for found in groups},
            "findings": [one.to_json() for found in groups for one in found],
        }


def examine(
    catalogue: Catalogue, *, codes: Sequence[str] = (), tools: Sequence[str] = ()
) -> Checkup:
    """Look at a catalogue; no model is asked and nothing is changed.

    Args:
        catalogue: The tools and what is known of them.
        codes: Codes of ``KINDS`` to look for; empty for all. Checks that find none of them are
            not run.
        tools: Names of the tools to report on; empty for all. Near duplicates and rivals are looked
            for among all tools in any case.

    Raises:
        UsageError: There is no such code, or no such tool.

    Example:
        >>> from agentkit.tools.definition import ToolDefinition
        >>> silent = ToolDefinition.from_schema("sync", "", {"properties": {"n": {}}})
        >>> found = examine(Catalogue.of([silent]), codes=["no_description", "untyped_parameter"])
        >>> [finding.kind.code for finding in found.findings]
        ['no_description', 'untyped_parameter']

    Cost: linear in the size of the definitions, except for the search for confused pairs, which
    retrieves once or more for each tool.
    """
    _require(codes, KINDS, "check", "agentkit.evaluation.doctor.KINDS lists them")
    _require(tools, catalogue.library.tools, "tool", "names are those of the library")
    if tools:
        catalogue = replace(catalogue, only=frozenset(tools))
    selected = set(codes or KINDS)
    found = [
        finding
        for look, finds in CHECKS.items()
        if selected.intersection(finds)
        for finding in look(catalogue)
        if finding.kind.code in selected
    ]
    order = {code: at for at, code in enumerate(KINDS)}

    def worst_first(finding: Finding) -> tuple[object, ...]:
        kind = finding.kind
        severity = SEVERITIES.index(kind.severity)
        return severity, order[kind.code], -finding.tokens, finding.tools, finding.what

    weights = {one.name: catalogue.tokens[one.name] for one in catalogue.definitions}
    heaviest = sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))
    return Checkup(
        catalogue=catalogue,
        weights=dict(heaviest),
        findings=tuple(sorted(found, key=worst_first)),
    )


def _require(names: Sequence[str], known: Iterable[str], what: str, hint: str) -> None:
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise UsageError(f"there is no {what} {', '.join(map(repr, unknown))}; {hint}")
