"""Health: how well each library version does, by day, and how canaries stand against control."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from statistics import fmean
from typing import Any

from starlette.responses import Response

from agentkit.evaluation.results.texts import label_name
from agentkit.evolution.gate_statistics import log_money_path
from agentkit.evolution.gates import CANARY, GateConfig, GateReport, blocks, canary_gate
from agentkit.evolution.proposal import ProposalRecord
from agentkit_studio.figures import gate_figure
from agentkit_studio.pages import Asked, NotThereError, Page, Place

_MOST_POINTS = 200
_MOST_KINDS = 12
_TABLES = ("days", "versions", "arms")


def shown(asked: Asked) -> Page:
    """The numbers as charts and as tables."""
    record = _record(asked)
    rules = asked.studio.gates
    reports = [(one, canary_gate_of(asked, one)) for one in _experiments(asked)]
    values = {
        "record": record,
        "labels": _by_version(record["versions"], "labels"),
        "failures": _by_version(record["versions"], "failures"),
        "versions": [one["version"] for one in record["versions"]][-_MOST_KINDS:],
        "canaries": [
            (one, None if report is None else gate_figure(report, rules)) for one, report in reports
        ],
        "label": label_name,
    }
    return Page(template="health.html", section="health", values=values)


def _record(asked: Asked) -> dict[str, Any]:
    """All numbers, with the evidence of each canary session by session."""
    asked.studio.health.update()
    asked.studio.manager.refresh()
    record = asked.studio.health.to_json()
    record["canaries"] = [
        path
        for one in _experiments(asked)
        if one.state == CANARY and (path := _path(asked, one, asked.studio.gates)) is not None
    ]
    return record


def _by_version(rows: Iterable[Mapping[str, Any]], what: str) -> list[tuple[str, list[int]]]:
    """How often each kind came in each of the newest versions, the most frequent kind first."""
    newest = list(rows)[-_MOST_KINDS:]
    kinds = dict.fromkeys(kind for row in newest for kind in row[what])
    table = [(kind, [row[what].get(kind, 0) for row in newest]) for kind in kinds]
    return sorted(table, key=lambda pair: -sum(pair[1]))[:_MOST_KINDS]


def _experiments(asked: Asked) -> Iterator[ProposalRecord]:
    """Proposals in canary or shadow."""
    for record in asked.studio.manager.ledger.proposals.values():
        if record.state in {CANARY, "shadow"}:
            yield record


def canary_gate_of(asked: Asked, record: ProposalRecord) -> GateReport | None:
    """What the gate says of a canary now, or said last of a shadow; None for nothing yet."""
    if record.state == CANARY:
        scores = asked.studio.health.scores_of(record.proposal_id)
        return canary_gate(scores, rules=asked.studio.gates) if scores else None
    last = record.assessments[-1:]
    return GateReport.from_json(last[0].facts) if last else None


def _path(asked: Asked, record: ProposalRecord, rules: GateConfig) -> dict[str, Any] | None:
    """How the evidence of a canary grew, as powers of ten; None for too few sessions."""
    scores = asked.studio.health.scores_of(record.proposal_id)
    gains = [fmean(candidate) - fmean(control) for control, candidate in blocks(scores)]
    if len(gains) < 2:  # a line takes two points
        return None
    step = math.ceil(len(gains) / _MOST_POINTS)
    alarm = list(log_money_path([-gain for gain in gains], bound=0.0))
    fine = list(log_money_path(gains, bound=-rules.margin))
    return {
        "proposal": record.proposal_id,
        "tool": record.tool_name,
        "block": list(range(1, len(gains) + 1))[::step],
        "alarm": [round(one / math.log(10), 3) for one in alarm[::step]],
        "no_worse": [round(one / math.log(10), 3) for one in fine[::step]],
        "line": round(-math.log10(rules.alpha), 3),
    }


def as_json(asked: Asked) -> Response:
    """The same for programs."""
    return Response(json.dumps(_record(asked)), media_type="application/json")


def as_csv(asked: Asked) -> Response:
    """The days, the versions or the arms as a table for a spreadsheet."""
    table = asked.query.get("table", "days")
    if table not in _TABLES:
        raise NotThereError(f"There are tables of {', '.join(_TABLES)}, and not of {table[:60]!r}.")
    rows = _record(asked)[table]
    out = io.StringIO()
    kinds = dict.fromkeys(kind for row in rows for kind in row["labels"])
    names = [name for name in rows[0] if name not in {"failures", "labels"}] if rows else [table]
    writer = csv.DictWriter(out, [*names, *kinds], extrasaction="ignore", restval=0)
    writer.writeheader()
    writer.writerows({**row, **row["labels"]} for row in rows)
    headers = {"content-disposition": f'attachment; filename="health-{table}.csv"'}
    return Response(out.getvalue(), media_type="text/csv", headers=headers)


PLACES = (
    Place(path="/health", name="health", view=shown, title="Health"),
    Place(path="/health.json", name="health_json", view=as_json),
    Place(path="/health.csv", name="health_csv", view=as_csv),
)
