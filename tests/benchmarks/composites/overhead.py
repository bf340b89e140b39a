"""What a composite costs beyond its children: our interpreter beside others (docs/benchmarks.md).

    python tests/benchmarks/composites/overhead.py [--peers-venvs DIR] [--rounds 3] [--no-write]

Every engine of ``engines.py`` runs the same two texts over the same five functions, each in a process
of its own, in turns. A figure is the quickest of many stretches in the best round, in CPU time. A peer
runs in the virtual environment ``DIR/<its name>``; without it the peer is left out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from engines import ENGINES
from harness import (
    DOCS,
    arguments,
    best,
    in_turns,
    machine,
    python_of,
    table,
    worker,
    write_section,
)

HERE = Path(__file__).resolve().parent


def rows_of(engines: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The engines beside the floor."""
    floor = engines["plain_python"]
    for name, found in engines.items():
        is_floor = found is floor
        row: dict[str, Any] = {"engine": f"{name} {found['version']}".strip()}
        for part, title in (("quote", "five children"), ("prices", "100 rows")):
            row[f"{title}, us"] = f"{found[part]:.1f}"
            beyond = "-" if is_floor else f"{found[part] - floor[part]:.1f}"
            row[f"{title}: beyond the children, us"] = beyond
        row["reading the text, us"] = f"{found['read']:.0f}" if found["read"] else "-"
        yield row


if __name__ == "__main__":
    parser = arguments(__doc__, rounds=3)
    parser.add_argument("--peers-venvs", type=Path, help="folder of environments of the peers")
    parser.add_argument("--repeats", type=int, default=25, help="stretches timed in a turn")
    parser.add_argument("--no-write", action="store_true", help="print only")
    options = parser.parse_args()
    found = {name: python_of(engine.venv, options.peers_venvs) for name, engine in ENGINES.items()}
    measures = {
        name: partial(worker, [python, HERE / "engines.py", name, str(options.repeats)])
        for name, python in found.items()
        if python is not None
    }
    about = machine()
    rows = list(rows_of({n: best(one) for n, one in in_turns(measures, options.rounds).items()}))
    print(table(rows))
    if not options.no_write:
        note = (
            f"{about['cpu']}, {about['system']}, Python {about['python']}, {about['date']}; CPU time, "
            f"the best of {options.repeats} stretches in {options.rounds} rounds; load {about['load']}."
        )
        write_section("composites", f"{note}\n\n{table(rows)}")
        record = json.dumps({"machine": about, "rows": rows}, indent=1)
        (DOCS / "benchmarks" / "composites.json").write_text(f"{record}\n", encoding="utf-8")
