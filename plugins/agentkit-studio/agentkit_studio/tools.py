"""The tools: search with reasons, one tool with its versions, and the composites around it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from typing import Any

from agentkit.errors import UsageError
from agentkit.evaluation.doctor import Catalogue, examine
from agentkit.evolution.differences import model_view, view_changes
from agentkit.library.library import Library
from agentkit.library.store import ToolRevision
from agentkit.retrieval.cards import card, estimate_tokens, schema_text
from agentkit.tools.definition import ToolDefinition
from agentkit_studio.inbox import author, shown_changes, typed_reason
from agentkit_studio.pages import Asked, Goto, Page, Place

_PAGE = 50
_MOST_REVISIONS = 100
_LONGEST_QUERY = 2_000


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
        values["more"] = rest[_PAGE - 1] if len(rest) > _PAGE else ""
    return Page(template="tools.html", section="tools", values=values)


def _tokens(definition: ToolDefinition) -> int:
    return estimate_tokens(schema_text(definition))


def tool(asked: Asked) -> Page:
    """One tool: what models see, what that costs, where it came from, what is around it."""
    manager, name = asked.studio.manager, asked.path["name"]
    library = manager.refresh()
    revisions = _revisions(asked, name)
    known = library.get(name)
    if known is None and not revisions:
        raise UsageError(f"no tool is called {name[:100]!r}, and none ever was")
    definition = known.definition if known is not None else None
    values = {
        "name": name,
        "definition": definition,
        "card": "" if definition is None else card(definition),
        "schema": "" if definition is None else _pretty(model_view(definition)),
        "tokens": 0 if definition is None else _tokens(definition),
        "revisions": revisions,
        "compared": _compared(asked, revisions),
        "findings": [] if definition is None else examine(Catalogue.of([definition])).findings,
        "parts": _around(library, name, "children"),
        "users": _around(library, name, "parents"),
        "pin": manager.ledger.pins.get(name),
    }
    return Page(template="tool.html", section="tools", values=values)


def _revisions(asked: Asked, name: str) -> list[ToolRevision]:
    """The newest come first."""
    return list(reversed(asked.studio.store.history(name)))[:_MOST_REVISIONS]


def _around(library: Library, name: str, side: str) -> list[tuple[str, bool]]:
    """Names next to a tool in the graph of composites, and whether each is still there."""
    found = getattr(library.dag, side).get(name, ())
    return [(one, one in library) for one in found]


def _compared(asked: Asked, revisions: Sequence[ToolRevision]) -> dict[str, Any]:
    """How two versions differ for models: those that were chosen, or the last two."""
    versions = [one.version for one in revisions]
    if len(versions) < 2:
        return {}
    chosen = [asked.query.get("old", ""), asked.query.get("new", "")]
    old, new = (
        int(text) if text.isdigit() and int(text) in versions else usual
        for text, usual in zip(chosen, (versions[1], versions[0]), strict=True)
    )
    by = {one.version: one.definition for one in revisions}
    before, after = by[old], by[new]
    changes = [] if after is None else list(shown_changes(view_changes(before, after)))
    return {"old": old, "new": new, "changes": changes, "is_removed": after is None}


def _pretty(record: object) -> str:
    return json.dumps(record, indent=2, ensure_ascii=False)


def pin(asked: Asked) -> Goto:
    """Hold a tool at a version, or take the pin off."""
    manager, name = asked.studio.manager, asked.path["name"]
    manager.refresh()
    version = asked.form.get("version", "")
    if version.isdigit():
        manager.pin(int(version), name, reason=typed_reason(asked), author=author(asked))
        notice = f"{name} is pinned to version {version}"
    else:
        manager.unpin(name, reason=typed_reason(asked), author=author(asked))
        notice = f"{name} is not pinned any more"
    return Goto(route="tool", values={"name": name}, notice=notice)


PLACES = (
    Place(path="/tools", name="tools", view=listed, title="Tools"),
    Place(path="/tools/{name:path}/pin", name="pin", view=pin, role="operator", acts=True),
    Place(path="/tools/{name:path}", name="tool", view=tool),
)
