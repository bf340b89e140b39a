"""Health: how well each library version does, by day, and how canaries stand against control."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from starlette.responses import Response

from agentkit.evaluation.results.texts import label_name
from agentkit.evolution.gates import GateReport
from agentkit_studio.pages import Asked, Page, Place


def shown(asked: Asked) -> Page:
    """The numbers as charts and as tables."""
    asked.studio.health.update()
    manager = asked.studio.manager
    manager.refresh()
    record = asked.studio.health.to_json()
    values = {
        "record": record,
        "failures": _failures(record["versions"]),
        "canaries": list(_canaries(asked)),
        "label": label_name,
    }
    return Page(template="health.html", section="health", values=values)


def _failures(versions: Iterable[Mapping[str, Any]]) -> list[tuple[str, int]]:
    """Kinds of failures over all versions, the most frequent first."""
    total: Counter[str] = Counter()
    for one in versions:
        total.update(one["failures"])
    return total.most_common(8)


def _canaries(asked: Asked) -> Iterator[tuple[str, str, GateReport | None]]:
    """Proposals in canary or shadow: id, tool, and what the gate said last."""
    for record in asked.studio.manager.ledger.proposals.values():
        if record.state in {"canary", "shadow"}:
            last = record.assessments[-1:] if record.assessments else ()
            report = GateReport.from_json(last[0].facts) if last else None
            yield record.proposal_id, record.tool_name, report


def as_json(asked: Asked) -> Response:
    """The same for programs."""
    asked.studio.health.update()
    return Response(json.dumps(asked.studio.health.to_json()), media_type="application/json")


def as_csv(asked: Asked) -> Response:
    """The days as a table for a spreadsheet."""
    asked.studio.health.update()
    rows = asked.studio.health.to_json()["days"]
    out = io.StringIO()
    names = [name for name in rows[0] if name != "failures"] if rows else ["day"]
    writer = csv.DictWriter(out, names, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    headers = {"content-disposition": 'attachment; filename="health.csv"'}
    return Response(out.getvalue(), media_type="text/csv", headers=headers)


PLACES = (
    Place(path="/health", name="health", view=shown, title="Health"),
    Place(path="/health.json", name="health_json", view=as_json),
    Place(path="/health.csv", name="health_csv", view=as_csv),
)
