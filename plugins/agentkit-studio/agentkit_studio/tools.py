"""The tools: search with reasons, one tool with its versions, findings, and proposals of words."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any

from agentkit.composites.composite import program_of
from agentkit.composites.language import render
from agentkit.evaluation.doctor import Catalogue, examine
from agentkit.evaluation.doctor.catalogue import KINDS, Finding
from agentkit.evaluation.doctor.checks import LONGEST_DESCRIPTION, is_placeholder
from agentkit.evaluation.doctor.schemas import markup, parts, sentences
from agentkit.evolution.differences import model_view, view_changes
from agentkit.evolution.proposal import Proposal, ProposalRecord
from agentkit.evolution.review import summary_of
from agentkit.evolution.worth import Worth, activated_at, worth_of
from agentkit.library.store import ToolRevision
from agentkit.retrieval.cards import card, estimate_tokens, schema_text
from agentkit.tools.definition import ToolDefinition, is_instructions
from agentkit.tools.patterns import invisible
from agentkit_studio.figures import graph_around
from agentkit_studio.health_fold import MANY_TOOLS
from agentkit_studio.inbox import author, typed_reason
from agentkit_studio.pages import Asked, BadRequestError, Goto, NotThereError, Page, Place, whole
from agentkit_studio.views import lines, pretty, side_by_side

_PAGE = 50
_MOST_REVISIONS = 100
_LONGEST_QUERY = 2_000
_FEW = 3
_LONGEST_TEXT = 10_000
_MOST_FIELDS = 200
SUMMARY = "summary"


async def listed(asked: Asked) -> Page:
    """The tools by name, or ranked for a request, with what each kind of evidence added."""
    library = asked.studio.manager.library
    query = asked.query.get("q", "").strip()[:_LONGEST_QUERY]
    values: dict[str, Any] = {"query": query, "count": len(library), "more": ""}
    if query:
        found = await asked.studio.retriever.retrieve(query, library)
        offered = {one.name for one in found.offered}
        values["hits"] = [(hit, hit.definition.name in offered) for hit in found.hits[:_PAGE]]
        values["unmatched"] = ", ".join(found.unmatched[:16])
    else:
        names = sorted(tool.name for tool in library)
        after = asked.query.get("after", "")
        rest = list(islice((name for name in names if name > after), _PAGE + 1))
        values["tools"] = [
            (library[name].definition, _tokens(library[name].definition)) for name in rest[:_PAGE]
        ]
        values["instructions"] = [] if after else list(library.instructions)
        values["more"] = rest[_PAGE - 1] if len(rest) > _PAGE else ""
    return Page(template="tools.html", section="tools", values=values)


def _tokens(definition: ToolDefinition) -> int:
    return estimate_tokens(schema_text(definition))


def tool(asked: Asked) -> Page:
    """One tool: what models see, what that costs, where it came from, what is around it."""
    manager, name = asked.studio.manager, asked.path["name"]
    library = manager.refresh()
    revisions = list(reversed(asked.studio.store.history(name)))[:_MOST_REVISIONS]
    known = library.get(name)
    if known is None and not revisions:
        raise NotThereError(f"No tool is called {name[:100]!r}, and none ever was.")
    definition = known.definition if known is not None else None
    program = None if definition is None else program_of(definition)
    asked.studio.health.update()
    fields = {} if definition is None else text_fields(definition)
    values = {
        "name": name,
        "is_instructions": is_instructions(name),
        "definition": definition,
        "card": "" if definition is None else card(definition),
        "parts": () if definition is None else side_by_side(definition, definition),
        "schema": "" if definition is None else pretty(model_view(definition)),
        "tokens": 0 if definition is None else _tokens(definition),
        "program": "" if program is None else render(program, name),
        "revisions": revisions,
        "compared": _compared(asked.query, revisions),
        "findings": []
        if definition is None or is_instructions(name)
        else examine(Catalogue.of([definition])).findings,
        "can_mend": can_mend,
        "to_write": to_write,
        "fields": fields,
        "writes": _to_write(asked, fields),
        "graph": graph_around(library, name),
        "promoted": list(_promoted(asked, name)),
        "activated_at": activated_at,
        "is_counting": asked.studio.health.is_working,
        "pin": manager.ledger.pins.get(name),
    }
    return Page(template="tool.html", section="tools", values=values)


def _to_write(asked: Asked, fields: Mapping[str, str]) -> dict[str, str]:
    """What the form for another text opens with: the tool's own, or what a finding suggests."""
    field, kind = asked.query.get("write", ""), KINDS.get(asked.query.get("finding", ""))
    if field not in fields or kind is None:
        return {"field": SUMMARY, "text": fields.get(SUMMARY, ""), "hint": "", "why": ""}
    text, why = suggested(kind.code, fields[field]), f"the doctor found {kind.title}"
    return {"field": field, "text": text, "hint": f"{kind.why} {kind.advice}", "why": why}


def _compared(query: Mapping[str, str], revisions: Sequence[ToolRevision]) -> dict[str, Any]:
    """How two versions differ for models: those that were chosen, or the last two."""
    by = {one.version: one.definition for one in revisions}
    versions = list(by)
    chosen = [whole(query.get("old", "")), whole(query.get("new", ""))]
    if strange := [one for one in chosen if one is not None and one not in by]:
        raise NotThereError(f"The tool did not change in library version {strange[0]}.")
    if len(versions) < 2:
        return {}
    old, new = (
        usual if one is None else one
        for one, usual in zip(chosen, (versions[1], versions[0]), strict=True)
    )
    before, after = by[old], by[new]
    texts = ["" if one is None else pretty(model_view(one)) for one in (before, after)]
    return {
        "old": old,
        "new": new,
        "parts": side_by_side(before, after),
        "json": list(lines(*texts)) if texts[0] != texts[1] else [],
    }


def _promoted(asked: Asked, name: str) -> Iterator[tuple[ProposalRecord, str, Worth | None]]:
    """Each promoted change of a tool, the newest first, with what it is worth since."""
    manager = asked.studio.manager
    revision = cache(manager.revision)
    made = [
        record
        for record in manager.ledger.proposals.values()
        if record.tool_name == name and record.activation is not None
    ]
    for record in sorted(made, key=activated_at, reverse=True):
        base = revision(name, record.base) if record.base else None
        changes = view_changes(base, record.candidate)
        summary = summary_of(base, record.candidate, changes)
        traffic = asked.studio.health.traffic
        yield record, summary, worth_of(record.proposal_id, manager.ledger, revision, traffic)


def pin(asked: Asked) -> Goto:
    """Hold a tool at a version, or take the pin off."""
    manager, name = asked.studio.manager, asked.path["name"]
    manager.refresh()
    if asked.form.get("off"):
        manager.unpin(name, reason=typed_reason(asked), author=author(asked))
        notice = f"{name} is not pinned any more"
    else:
        version = whole(asked.form.get("version", ""))
        if version is None:
            raise BadRequestError("Say to which library version the tool is pinned.")
        manager.pin(version, name, reason=typed_reason(asked), author=author(asked))
        notice = f"{name} is pinned to version {version}"
    return Goto(route="tool", values={"name": name}, notice=notice)


# --- What the doctor finds ------------------------------------------------------------------------


def found(asked: Asked) -> Page:
    """All findings of a kind, the worst kinds first."""
    library = asked.studio.manager.refresh()
    examined = asked.studio.examination.of(library)
    chosen = asked.query.get("kind", "")
    if chosen and chosen not in KINDS:
        raise NotThereError(f"There is no finding {chosen[:60]!r}.")
    values = {
        "groups": [
            (kind, count, found if chosen else found[:_FEW])
            for kind, count, found in (() if examined is None else examined.kinds)
            if chosen in {"", kind.code}
        ],
        "examined": examined,
        "chosen": chosen,
        "can_mend": can_mend,
        "to_write": to_write,
        "is_large": len(library) > MANY_TOOLS,
    }
    return Page(template="findings.html", section="tools", values=values)


# --- Changes of words that people propose ---------------------------------------------------------


def _without_invisible(text: str) -> str:
    return text.translate(dict.fromkeys(map(ord, invisible(text))))


def _without_markup(text: str) -> str:
    for tag in markup(text):
        text = text.replace(tag, html.unescape(tag) if tag.startswith("&") else "")
    return re.sub(r" {2,}", " ", text).strip()


def _without_placeholder(text: str) -> str:
    return "" if is_placeholder(text) else text


_MENDS: Mapping[str, Callable[[str], str]] = {
    "invisible": _without_invisible,
    "markup": _without_markup,
    "placeholder": _without_placeholder,
}
"""Findings that can be mended without asking anybody for words. Contracts, which other findings are
about, are the code's or the server's: no proposal changes them."""

_WORDS = frozenset(
    {"no_description", "no_parameter_text", "placeholder", "echo_description", "long_description"}
    | {"says_broken", "duplicate", "near_duplicate", "siblings", "not_found", "confused"}
    | {"unaffordable", "passed_over"}
)
"""Findings that other words mend, which somebody has to write."""


def can_mend(one: Finding) -> bool:
    """Whether one click proposes what mends a finding: of a tool's own sentence something stays."""
    return one.kind.code in _MENDS and (one.kind.code != "placeholder" or SUMMARY not in one.where)


def to_write(one: Finding) -> str:
    """The text that somebody would write because of a finding; empty for none."""
    if one.kind.code not in _WORDS:
        return ""
    place = next(iter(one.where), SUMMARY)
    return place.removeprefix("parameters.") if place.startswith("parameters.") else SUMMARY


def suggested(code: str, text: str) -> str:
    """What a form for a finding opens with: of a long text the sentences that fit."""
    if code != "long_description":
        return "" if is_placeholder(text) else text
    kept = ""
    for sentence in sentences(text):
        if kept and len(kept) + len(sentence) >= LONGEST_DESCRIPTION:
            break
        kept += f" {sentence}" if kept else sentence
    return kept[:LONGEST_DESCRIPTION]


def text_fields(definition: ToolDefinition) -> Mapping[str, str]:
    """What a person may write: the sentence of the tool, and one for each parameter.

    As they are, without invisible characters: what nobody sees nobody should send on.
    """
    texts = definition.description.parameters
    below = (part.path for part in parts(definition.parameters_schema) if part.role == "property")
    named = (one for one in islice(below, _MOST_FIELDS) if not one.startswith("$defs."))
    fields = {
        SUMMARY: definition.description.summary,
        **{name: texts.get(name, "") for name in (*named, *texts)},
    }
    return {name: _without_invisible(text) for name, text in fields.items()}


def mend(asked: Asked) -> Goto:
    """Propose what mends a finding."""
    definition, code = _definition(asked), asked.form.get("code", "")
    change = _MENDS.get(code)
    if change is None:
        raise BadRequestError("Nothing mends that finding without new words; write them.")
    words = definition.description
    texts = {path: change(text) for path, text in words.parameters.items()}
    mended = replace(
        words,
        summary=change(words.summary) or words.summary,
        parameters={path: text for path, text in texts.items() if text},
        usage_rules=tuple(filter(None, map(change, words.usage_rules))),
    )
    reason = f"the doctor found {KINDS[code].title}"
    return _proposed(asked, definition, replace(definition, description=mended), reason)


def suggest(asked: Asked) -> Goto:
    """Propose another text for the tool or for one of its parameters."""
    definition, field = _definition(asked), asked.form.get("field", "")
    lines_typed = asked.form.get("text", "")[:_LONGEST_TEXT].splitlines()
    text = "\n".join(" ".join(one.split()) for one in lines_typed).strip()
    if field not in text_fields(definition):
        raise BadRequestError("Say which text is to change.")
    if not text:
        raise BadRequestError("Write the text; an empty one says nothing.")
    words = definition.description
    if field == SUMMARY:
        changed = replace(words, summary=text)
    else:
        changed = replace(words, parameters={**words.parameters, field: text})
    reason = typed_reason(asked) or "written in the studio"
    return _proposed(asked, definition, replace(definition, description=changed), reason)


def _definition(asked: Asked) -> ToolDefinition:
    known = asked.studio.manager.refresh().get(asked.path["name"])
    if known is None:
        raise NotThereError(f"The library has no tool {asked.path['name'][:100]!r}.")
    return known.definition


def _proposed(asked: Asked, base: ToolDefinition, candidate: ToolDefinition, reason: str) -> Goto:
    if candidate.digest == base.digest:
        raise BadRequestError("That changes nothing.")
    suggestion = Proposal.of(base, candidate, stream="person", author=author(asked), reason=reason)
    record = asked.studio.manager.submit(suggestion)
    return Goto(
        route="proposal",
        values={"proposal_id": record.proposal_id},
        notice="proposed" if record.is_open else "the checks refuse it",
    )


PLACES = (
    Place(path="/findings", name="findings", view=found),
    Place(path="/tools", name="tools", view=listed, title="Tools"),
    Place(path="/tools/{name:path}/mend", name="mend", view=mend, role="reviewer", acts=True),
    Place(
        path="/tools/{name:path}/suggest",
        name="suggest",
        view=suggest,
        role="reviewer",
        acts=True,
    ),
    Place(path="/tools/{name:path}/pin", name="pin", view=pin, role="operator", acts=True),
    Place(path="/tools/{name:path}", name="tool", view=tool),
)
