"""Texts that are there and say nothing, and texts that say too much."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentkit.evaluation.doctor.catalogue import Catalogue
from agentkit.evaluation.doctor.finding import Finding, Kind
from agentkit.evaluation.doctor.listing import listed, quoted
from agentkit.retrieval.cards import first_sentence
from agentkit.retrieval.words import terms
from agentkit.tools.definition import ToolDefinition

LONGEST_DESCRIPTION = 1024
"""Characters; Azure OpenAI refuses longer function descriptions, see the Azure OpenAI reference,
``FunctionObject``; beyond that it is a matter of cost."""

LONGEST_PARAMETER_TEXT = 500
"""Characters of the description of one parameter."""

_FILLERS_TEXT = """
tool function method api endpoint call execute perform run operation given specified provided
"""
_FILLERS = frozenset(_FILLERS_TEXT.split())
"""Words that say nothing of a tool."""

_PARAMETER_FILLERS = _FILLERS | frozenset(
    ("value", "parameter", "param", "argument", "input", "field")
)
"""Words that say nothing of a parameter."""
_BROKEN = re.compile(
    r"^\W*(deprecated|obsolete|do not use)\b"
    r"|\b(permanently unavailable|no longer (available|works|working|supported|maintained))\b"
    r"|\b(this|the) (tool|function|endpoint|api|method) (is|has been) "
    r"(deprecated|obsolete|unavailable|removed|discontinued|decommissioned)\b",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"[\W_]*(todo|tbd|fixme|n/?a|none|null|undefined|description|no description( available| "
    r"provided)?|placeholder|lorem ipsum.*|x{3,}|string|text|test|foo|asdf)?[\W_]*",
    re.IGNORECASE | re.DOTALL,
)

SAYS_BROKEN = Kind(
    code="says_broken",
    severity="warning",
    title="tools whose own description says not to use them",
    why="They are searched, offered and paid for like the others.",
    advice="Take them out of the catalogue.",
)
ECHO = Kind(
    code="echo_description",
    severity="warning",
    title="descriptions that only repeat the name",
    why="The model pays for words that it has read already, and learns nothing from them.",
    advice="Say what the tool does that its name does not: on what, with what result, when.",
)
ECHO_PARAMETER = Kind(
    code="echo_parameter_text",
    severity="note",
    title="parameter descriptions that only repeat the name",
    why="Each is paid for with every request, and says nothing.",
    advice="Say the unit, format or an example, or leave the text out.",
)
PLACEHOLDER = Kind(
    code="placeholder",
    severity="warning",
    title="placeholders in place of a text",
    why="The text was never written; the retriever matches it all the same.",
    advice="Write the text, or leave it out.",
)
LONG = Kind(
    code="long_description",
    severity="warning",
    title=f"descriptions over {LONGEST_DESCRIPTION:,} characters",
    why="Some providers refuse them, all charge for them, and the first sentence drowns.",
    advice="Keep what it does and when to use it; move the rest to the parameters it is about.",
)
LONG_PARAMETER = Kind(
    code="long_parameter_text",
    severity="note",
    title=f"parameter descriptions over {LONGEST_PARAMETER_TEXT:,} characters",
    why="They are paid for with every request that offers the tool.",
    advice="Keep meaning, unit, format and one example; list allowed values as an enum.",
)


def poor_texts(catalogue: Catalogue) -> Iterator[Finding]:
    """Echoes of names, placeholders, texts that warn of their tool, and texts over a length."""
    for definition in catalogue.definitions:
        yield from _of_description(catalogue, definition)
        yield from _of_parameters(catalogue, definition)


def _of_description(catalogue: Catalogue, definition: ToolDefinition) -> Iterator[Finding]:
    text, tools, where = definition.text.strip(), (definition.name,), ("summary",)
    tokens = catalogue.count_tokens(text)
    if not text:
        return
    opening = first_sentence(text)
    if _BROKEN.search(opening):
        whole = catalogue.weights[definition.name].tokens
        what = f"it says {quoted(opening)}"
        yield Finding(kind=SAYS_BROKEN, tools=tools, what=what, where=where, tokens=whole)
    if _PLACEHOLDER.fullmatch(text):
        what = f"the description is {quoted(text)}"
        yield Finding(kind=PLACEHOLDER, tools=tools, what=what, where=where, tokens=tokens)
    elif _repeats(text, definition.name, _FILLERS):
        what = f"{quoted(text)} says no more than the name"
        yield Finding(kind=ECHO, tools=tools, what=what, where=where, tokens=tokens)
    elif len(text) > LONGEST_DESCRIPTION:
        what = f"{len(text):,} characters: {quoted(text)}"
        yield Finding(kind=LONG, tools=tools, what=what, where=where, tokens=tokens)


def _of_parameters(catalogue: Catalogue, definition: ToolDefinition) -> Iterator[Finding]:
    texts = definition.description.parameters
    empty = {path for path, text in texts.items() if _PLACEHOLDER.fullmatch(text.strip() or "x")}
    echoes = {
        path
        for path, text in texts.items()
        if path not in empty and text.strip() and _repeats(text, path, _PARAMETER_FILLERS)
    }
    long = {path for path, text in texts.items() if len(text) > LONGEST_PARAMETER_TEXT}
    for kind, found in ((PLACEHOLDER, empty), (ECHO_PARAMETER, echoes), (LONG_PARAMETER, long)):
        if found:
            paths = [path for path in texts if path in found]
            shown = [f"{path} {quoted(texts[path], longest=40)}" for path in paths]
            yield Finding(
                kind=kind,
                tools=(definition.name,),
                what=listed(shown, shown=2),
                where=tuple(f"parameters.{path}" for path in paths),
                tokens=catalogue.count(texts[path] for path in paths),
            )


def _repeats(text: str, name: str, fillers: frozenset[str]) -> bool:
    """Whether every word of ``text`` is in ``name``, or means nothing here."""
    said = set(terms(text))
    return bool(said) and said <= set(terms(name)) | fillers
