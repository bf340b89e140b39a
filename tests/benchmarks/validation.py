"""What validation rejects, what waits for somebody, and what it costs (docs/validation.md).

    python tests/benchmarks/validation.py [--corpus first|second|third] [--failed]
    python tests/benchmarks/validation.py --catalogue FOLDER

For each class of changes of a corpus, as a model would suggest them: how many nobody is asked about, how
many wait for a judge or a person, and how many are rejected, with Wilson intervals (95 %), and the CPU time
of one validation, with everything worked out anew. ``--failed`` adds the valid changes that are rejected.

``--catalogue`` tells which tools of a public catalogue (``tools.jsonl.gz``) an import would hold, by code.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness import arguments, cpu_ms, percentile, report
from support.rewrites import RewriteCase, read_rewrites

from agentkit.evolution.validation import ProposedChange, validate
from agentkit.evolution.validation.foreign_texts import suspicions
from agentkit.evolution.validation.report import ValidationReport
from agentkit.library.library import Library
from agentkit.metrics.statistics import wilson_interval
from agentkit.testing import sample_library
from agentkit.tools import definition_from_json
from agentkit.tools.definition import ToolDefinition

CORPORA = Path(__file__).parents[1] / "evolution" / "validation" / "corpora"
FIRST = {"overt": ("attacks", "attacks_held_out"), "valid": ("rewrites", "rewrites_held_out")}


def cases_of(corpus: str) -> tuple[Library, dict[str, list[RewriteCase]]]:
    """The tools that a corpus is about, and its changes by kind."""
    if corpus == "first":
        records = json.loads((CORPORA / "tools.json").read_text(encoding="utf-8"))
        found = {
            kind: [one for name in names for one in read_rewrites(CORPORA / f"{name}.tsv")]
            for kind, names in FIRST.items()
        }
        paraphrased = [one for one in found["overt"] if one.labels["style"] == "paraphrased"]
        found["overt"] = [one for one in found["overt"] if one not in paraphrased]
        found["paraphrased"] = paraphrased
    else:
        lines = (CORPORA / corpus / "tools.jsonl").read_text(encoding="utf-8").splitlines()
        records = [json.loads(line)["definition"] for line in lines]
        kinds = ("overt", "paraphrased", "valid")
        found = {kind: list(read_rewrites(CORPORA / corpus / f"{kind}.jsonl")) for kind in kinds}
    return sample_library().with_tools(map(ToolDefinition.from_json, records)), found


def judged(change: ProposedChange) -> tuple[str, float]:
    """What validation says: ``accepted``, ``waits`` or ``rejected``; and milliseconds of CPU."""
    found: list[ValidationReport] = []
    spent = cpu_ms(lambda: found.append(validate(change)))
    (said,) = found
    return ("rejected" if said.failed else "waits" if said.needs else "accepted"), spent


def ends_of(corpus: str, *, failed: bool) -> list[dict[str, Any]]:
    """How each class of a corpus ends."""
    library, kinds = cases_of(corpus)
    ends: dict[tuple[str, str], list[str]] = {}
    times: list[float] = []
    for kind, cases in kinds.items():
        for case in cases:
            end, spent = judged(case.change(library))
            times.append(spent)
            for name in (case.labels.get("class", "rewrite"), "all"):
                ends.setdefault((kind, name), []).append(end)
            if failed and kind == "valid" and end == "rejected":
                print(case.labels.get("id", ""), case.tool, case.place, case.value)
    print(f"CPU ms: median {percentile(times, 0.5):.2f}, 95th {percentile(times, 0.95):.2f}\n")
    return [
        {
            "kind": kind,
            "class": f"{name.replace('_', ' ')} ({len(found)})",
            **{end: share(found, end) for end in ("accepted", "waits", "rejected")},
        }
        for (kind, name), found in ends.items()
    ]


def share(found: Sequence[str], end: str) -> str:
    """How many ended so, with the interval of their share."""
    interval = wilson_interval(found.count(end), len(found))
    return f"{found.count(end)} ({interval.low:.0%} to {interval.high:.0%})"


def held_of(folder: Path) -> Iterator[dict[str, Any]]:
    """How many tools of a public catalogue an import holds, by code."""
    codes: Counter[str] = Counter()
    with gzip.open(folder / "tools.jsonl.gz", "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            found = suspicions(definition_from_json(record.get("definition", record)))
            codes.update({one.code for one in found})
            codes.update(["all tools", *(["held"] if found else [])])
    yield from ({"code": code, "tools": count} for code, count in codes.most_common())


if __name__ == "__main__":
    parser = arguments(__doc__, rounds=None)
    parser.add_argument("--corpus", choices=("first", "second", "third"), default="first")
    parser.add_argument("--failed", action="store_true")
    parser.add_argument("--catalogue", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    if options.catalogue:
        report(list(held_of(options.catalogue)), options)
    else:
        report(ends_of(options.corpus, failed=options.failed), options)
