"""What the doctor finds in the library, and changes of a tool's words that people propose."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from agentkit.evaluation.doctor.catalogue import KINDS
from agentkit.evaluation.doctor.schemas import markup
from agentkit.evolution.proposal import Proposal
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.patterns import invisible
from agentkit_studio.health_fold import MANY_TOOLS
from agentkit_studio.inbox import author, typed_reason
from agentkit_studio.pages import Asked, BadRequestError, Goto, NotThereError, Page, Place

_FEW = 3
_LONGEST_TEXT = 10_000
SUMMARY = "summary"


def listed(asked: Asked) -> Page:
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


_MENDS: Mapping[str, Callable[[str], str]] = {
    "invisible": _without_invisible,
    "markup": _without_markup,
}
"""Findings that can be mended without asking anybody for words."""


def can_mend(code: str) -> bool:
    """Whether one click proposes what mends a finding."""
    return code in _MENDS


def text_fields(definition: ToolDefinition) -> Mapping[str, str]:
    """What a person may write: the sentence of the tool, and one for each parameter.

    As they are, without invisible characters: what nobody sees nobody should send on.
    """
    texts = definition.description.parameters
    fields = {
        SUMMARY: definition.description.summary,
        **{name: texts.get(name, "") for name in (*definition.signature.properties, *texts)},
    }
    return {name: _without_invisible(text) for name, text in fields.items()}


def mend(asked: Asked) -> Goto:
    """Propose what mends a finding."""
    definition, code = _definition(asked), asked.form.get("code", "")
    change = _MENDS.get(code)
    if change is None:
        raise BadRequestError("Nothing mends that finding without new words; write them.")
    words = definition.description
    mended = replace(
        words,
        summary=change(words.summary),
        parameters={path: change(text) for path, text in words.parameters.items()},
        usage_rules=tuple(map(change, words.usage_rules)),
    )
    reason = f"the doctor found {KINDS[code].title}"
    return _proposed(asked, definition, replace(definition, description=mended), reason)


def suggest(asked: Asked) -> Goto:
    """Propose another text for the tool or for one of its parameters."""
    definition, field = _definition(asked), asked.form.get("field", "")
    text = " ".join(asked.form.get("text", "").split())[:_LONGEST_TEXT]
    if field not in text_fields(definition):
        raise BadRequestError("Say which text is to change.")
    words = definition.description
    if field == SUMMARY:
        changed = replace(words, summary=text)
    else:
        texts = {**words.parameters, field: text}
        changed = replace(words, parameters={path: one for path, one in texts.items() if one})
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
    Place(path="/findings", name="findings", view=listed),
    Place(path="/tools/{name:path}/mend", name="mend", view=mend, role="reviewer", acts=True),
    Place(
        path="/tools/{name:path}/suggest", name="suggest", view=suggest, role="reviewer", acts=True
    ),
)
