"""``agentkit bench retrieval``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TextIO

import click

from agentkit._waiting import wait_for
from agentkit.cli.options import AsJson, command, option
from agentkit.cli.output import Column, LineProgress, print_json_line, print_table, say, stdout
from agentkit.errors import UsageError
from agentkit.tools.error_messages import plural
from agentkit_bench.retrieval.corpus import CorpusFiles, Identity, Split
from agentkit_bench.retrieval.leave_one_out import leave_one_out, read_folders, table
from agentkit_bench.retrieval.measure import RECALL_AT, MethodReport, compare, measure_apart
from agentkit_bench.retrieval.methods import HINTS, METHODS, Equipment, find_method

_QUALITY = ("R@1", "R@5", "R@10", "R@32", "full@10")
_COST = ("tokens", "p50 ms", "p99 ms", "MB")
_WIDTH = 78
"""Columns that both together take up, with the longest name of a method."""

_BASELINES = ("default", "no_vectors", "half_and_half", "lexical", "vectors")

_Files = Annotated[tuple[str, ...], option(type=click.Path(exists=True, dir_okay=False))]
_Folders = Annotated[
    tuple[str, ...], option("--leave-one-out", type=click.Path(exists=True, file_okay=False))
]
_Output = Annotated[  # opened at once: a bad path is told before the work
    TextIO | None,
    option("-o", "--output", type=click.File("w", encoding="utf-8", lazy=False)),
]


@command(
    short_help="Compare ways to find tools on questions of yours.",
    more="Methods:\n"
    + "\n".join(f"  {method.name:<15} {method.summary}" for method in METHODS.values()),
)
def retrieval(
    *,
    folders: _Folders = (),
    catalogue: _Files = (),
    queries: _Files = (),
    methods: str = "",
    by: Identity = "id",
    split: Split = "all",
    max_queries: int | None = None,
    embedder: str | None = None,
    model: str | None = None,
    output: _Output = None,
    as_json: AsJson,
) -> None:
    """Compare ways to find tools on a catalogue and questions of yours.

    Each method runs in a process of its own with one thread. R@k is the share of the right tools
    among the first k, full@k the share of questions with all right tools among them. Tokens, an
    estimate of four bytes each, are those of what a model would be shown: cards and schemas. CPU
    is that of one query, memory what the method added to a process that held the catalogue.

    Args:
        folders (FOLDER): Instead of a catalogue: choose the settings of the default on all of these
            corpora but one, report them on that one, and so on. There are at least two; a corpus
            is a folder with tools.jsonl and retrieval.jsonl, plain or .gz.
        catalogue (FILE): JSON lines, plain or .gz: name, description, parameters; optional id,
            returns or output, examples. Several files are one catalogue.
        queries (FILE): JSON lines, plain or .gz: query, and gold or gold_tools (ids or names);
            optional id, category.
        methods (NAME,...): What to compare, see below; by default every method whose needs are met.
            Also module:attribute of a retriever of yours, or of a function (shortlist, offer,
            token_budget) that makes one.
        by: Whether tools of one name count as one tool.
        split: Which questions: those to tune on, those to report, or both. A category that begins
            with dev or test decides; else the SHA-256 of the id does, three tenths are dev.
        max_queries: Ask an even sample of this many questions.
        embedder (NAME): An embedding model: module:function (texts to rows of numbers), or the name
            or folder of a sentence-transformers model.
        model (NAME): A language model that plans and judges, such as openai:NAME or local:NAME.
        output (FILE): Also write the JSON lines here, each when its method is done.
        as_json: Print one JSON object a method.

    Examples:
      agentkit bench retrieval --catalogue tools.jsonl --queries queries.jsonl
      agentkit bench retrieval --catalogue t.jsonl.gz --queries q.jsonl.gz --by name --json
      agentkit bench retrieval --catalogue t.jsonl --queries q.jsonl --methods lexical --split test
      agentkit bench retrieval --catalogue t.jsonl --queries q.jsonl --methods default,mine:careful
      agentkit bench retrieval --leave-one-out bfcl --leave-one-out metatool --by name
    """
    if folders:
        _leave_one_out(folders, methods, by, max_queries)
        return
    if not catalogue or not queries:
        raise UsageError(
            "name a catalogue with --catalogue and --queries, or several corpora with "
            "--leave-one-out FOLDER"
        )
    files = CorpusFiles(
        tools=catalogue, queries=queries, by=by, split=split, max_queries=max_queries
    )
    equipment = Equipment(embedder_name=embedder, model_name=model)
    names = _chosen(methods, equipment)
    done: list[MethodReport] = []
    for name in names:
        told = LineProgress(f"Measuring {name}")
        done.append(measure_apart(name, files, equipment, progress=told))
        record = _record(done, files)
        if as_json:
            print_json_line(record)
        if output is not None:
            output.write(json.dumps(record, ensure_ascii=False) + "\n")
            output.flush()
    if not as_json:
        _print(done, files)


def _leave_one_out(
    folders: Sequence[str], methods: str, by: Identity, max_queries: int | None
) -> None:
    names = [name.strip() for name in methods.split(",") if name.strip()] or list(_BASELINES)
    corpora = read_folders([Path(folder) for folder in folders], by=by)
    measured = leave_one_out(corpora, names, max_queries=max_queries, progress=say)
    for line in table(wait_for(measured)):
        click.echo(line)


def _chosen(methods: str, equipment: Equipment) -> list[str]:
    """The methods that were asked for; else all whose needs are met, and a word on the others."""
    names = list(dict.fromkeys(filter(None, (name.strip() for name in methods.split(",")))))
    ready = []
    left_out: dict[str, list[str]] = {}
    for method in map(find_method, names or METHODS):
        missing = "; ".join(HINTS[need] for need in sorted(method.missing(equipment)))
        if missing and names:
            raise UsageError(f"the method {method.name!r} needs {missing}")
        if missing:
            left_out.setdefault(missing, []).append(method.name)
        else:
            ready.append(method.name)
    for hint, without in left_out.items():
        say(f"Leaving out {', '.join(without)}; needed is {hint}")
    return ready


def _record(done: Sequence[MethodReport], files: CorpusFiles) -> dict[str, Any]:
    """The last report, with how it compares with the first."""
    record = done[-1].to_json() | {"by": files.by, "split": files.split}
    if len(done) > 1:
        record["versus"] = {"method": done[0].method} | {
            f"recall@{depth}": {
                "difference": round(interval.value, 4),
                "low": round(interval.low, 4),
                "high": round(interval.high, 4),
            }
            for depth, interval in compare(done[-1], done[0]).items()
        }
    return record


def _print(done: Sequence[MethodReport], files: CorpusFiles) -> None:
    rows = [_row(report) for report in done]
    if stdout().width >= _WIDTH:
        _print_rows(_QUALITY + _COST, rows)
    else:  # one table below the other
        _print_rows(_QUALITY, [row[: len(_QUALITY) + 1] for row in rows])
        click.echo()
        _print_rows(_COST, [(row[0], *row[len(_QUALITY) + 1 :]) for row in rows])
    say(
        f"\n{plural(done[0].tools, 'tool')}, {plural(len(done[0].asked), 'question')} "
        f"({files.split}), tools told apart by {files.by}; R@k and full@k in percent."
    )
    if done[0].unknown_gold:
        say(
            f"Not found by any method: {plural(done[0].unknown_gold, 'gold tool')} that "
            "--catalogue does not hold. Gold is an id where tools have one, or a name."
        )
    if len(done) > 1:
        say("Points of recall more or less, with the 95% interval of the paired difference:")
        for report in done[1:]:
            say(f"  {report.method}: " + ", ".join(_differences(report, done[0])))
    for report in done:
        for note, times in report.notes.items():
            say(f"{report.method}, {plural(times, 'question')}: {note}")


def _print_rows(titles: Sequence[str], rows: Sequence[tuple[object, ...]]) -> None:
    columns = [Column(title="method", fit="fold")]
    columns += [Column(title=title, align="right") for title in titles]
    print_table(columns, rows)


def _row(report: MethodReport) -> tuple[object, ...]:
    figures = report.figures
    shares = (*(figures[f"recall@{depth}"] for depth in RECALL_AT), figures["full@10"])
    return (
        report.method,
        *(f"{share * 100:.1f}" for share in shares),
        f"{figures['tokens']:,.0f}",
        f"{figures['cpu_p50_ms']:.2f}",
        f"{figures['cpu_p99_ms']:.2f}",
        f"{figures['memory_mb']:.0f}",
    )


def _differences(report: MethodReport, against: MethodReport) -> Iterator[str]:
    for depth, interval in compare(report, against).items():
        mean, low, high = (100 * end for end in (interval.value, interval.low, interval.high))
        yield f"@{depth} {mean:+.1f} [{low:+.1f}, {high:+.1f}]"
