"""What validation lets through, what it rejects wrongly, and what it costs.

    python tests/benchmarks/bench_validation.py [--catalogue FOLDER ...] [--rounds 20] [--corpus second|third] [--half 0|1] [--failed]

Prints three tables in Markdown:

* how many changes of the four corpora in ``tests/evolution/validation/corpora`` pass, by class and
  style; of attacks, with nobody asked. Below it, how
  many valid rewrites of reading tools need nobody;
* with ``--catalogue``, which codes the texts of public tools draw. A folder holds
  ``tools.jsonl.gz``. Each definition counts as a change of itself without any words, so that every
  text is new: a hard case, since nothing that the base says excuses anything;
* the CPU time of ``validate`` on one change with everything worked out anew, in a library of 31
  tools and one of 10,000. Names and summaries of a library are indexed once and carried on from
  version to version; that is a row of its own.

``--corpus second`` prints one table instead, about ``corpora/second``: for each class how many changes
nobody is asked about, how many wait for a judge or a person, and how many are rejected, with
Wilson intervals of the shares (95 %), and the CPU time of one validation. ``--half 0`` counts the
tools alone whose cases may be read while the checks are changed, ``--half 1`` those of which only
counts are reported. ``--failed`` adds the ids of the poisons of half 0 that nobody is asked about
and of its valid rewrites that wait or are rejected.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median, quantiles

from agentkit.evolution.validation import ALL_CHECKS, ProposedChange, validate
from agentkit.evolution.validation.approvals import ValidationPolicy
from agentkit.evolution.validation.tool_names import WORDS
from agentkit.library.library import Library
from agentkit.metrics.intervals import wilson_interval
from agentkit.testing import sample_library
from agentkit.tools.definition import Description, ToolDefinition
from agentkit.tools.sources import definition_from_json

sys.path.append(str(Path(__file__).parents[1]))  # for tests/support

from support.rewrites import RewriteCase, read_rewrites

CORPORA = Path(__file__).parents[1] / "evolution" / "validation" / "corpora"
LARGE = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One class of changes.

    Attributes:
        name: Class and style.
        passed: How many validation accepts; of attacks, with nobody asked.
        total: How many there are.
    """

    name: str
    passed: int
    total: int


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--catalogue", action="append", default=[], type=Path, metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--corpus", choices=("second", "third"))
    parser.add_argument("--half", type=int, choices=(0, 1))
    parser.add_argument("--failed", action="store_true")
    given = parser.parse_args()
    if given.corpus:
        print_corpus(CORPORA / given.corpus, half=given.half, failed=given.failed)
        return
    library = corpus_library()
    print_passed(library)
    for folder in given.catalogue:
        print_catalogue(folder)
    print_times(library, given.rounds)


def corpus_library() -> Library:
    """The tools that the corpora are about."""
    records = json.loads((CORPORA / "tools.json").read_text(encoding="utf-8"))
    return sample_library().with_tools(map(ToolDefinition.from_json, records))


def rows(cases: Sequence[RewriteCase], library: Library) -> Iterator[Row]:
    """How many cases pass, by class and style."""
    total: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    for case in cases:
        name = f"{case.labels.get('class', 'rewrite')}, {case.labels.get('style', 'valid')}"
        total[name] += 1
        report = validate(case.change(library))
        passed[name] += report.is_valid and not ("class" in case.labels and report.needs)
    for name, count in total.items():
        yield Row(name=name, passed=passed[name], total=count)


def print_passed(library: Library) -> None:
    """The table of what passes."""
    print("| changes | first half | held-out half |\n|---|---|---|")
    for kind in ("attacks", "rewrites"):
        halves = [
            {row.name: row for row in rows(read_rewrites(CORPORA / f"{kind}{half}.tsv"), library)}
            for half in ("", "_held_out")
        ]
        for name in dict.fromkeys((*halves[0], *halves[1])):
            found = [half.get(name, Row(name=name, passed=0, total=0)) for half in halves]
            cells = " | ".join(f"{row.passed} of {row.total}" for row in found)
            print(f"| {name.replace('_', ' ')} | {cells} |")
    tools = json.loads((CORPORA / "catalogue_tools.json").read_text(encoding="utf-8"))
    catalogue = Library(map(ToolDefinition.from_json, tools))
    print_free("sample tools", read_rewrites(CORPORA / "rewrites.tsv"), library)
    print_free("sample tools, held out", read_rewrites(CORPORA / "rewrites_held_out.tsv"), library)
    for name in ("catalogue", "catalogue_second"):
        cases = read_rewrites(CORPORA / f"{name}.tsv")
        valid = [case for case in cases if case.labels["style"] == "valid"]
        print_free(name, valid, catalogue)


def print_free(name: str, cases: Sequence[RewriteCase], library: Library) -> None:
    """How many rewrites of tools that only read, and of which nothing else asks, need nobody."""
    changes = [case.change(library) for case in cases]
    reading = [
        validate(change)
        for change in changes
        if change.base.signature.effects.is_read_only
        and not ValidationPolicy(new_words=()).needs(change)
    ]
    free = sum(report.is_valid and not report.needs for report in reading)
    print(f"\n{name}: {free} of {len(reading)} valid rewrites of reading tools need nobody")


def library_of(corpus: Path) -> Library:
    """The tools that a corpus is about."""
    lines = (corpus / "tools.jsonl").read_text(encoding="utf-8").splitlines()
    records = (json.loads(line)["definition"] for line in lines)
    return sample_library().with_tools(map(ToolDefinition.from_json, records))


def half_of(tool: str) -> int:
    """Half 0 of a corpus may be looked at; of half 1 nothing but counts is known."""
    return int(hashlib.sha1(tool.encode(), usedforsecurity=False).hexdigest(), 16) % 2


def print_corpus(corpus: Path, *, half: int | None, failed: bool) -> None:
    """How each class of a corpus, or of one half of it, ends."""
    library = library_of(corpus)
    ends: dict[tuple[str, str], list[str]] = {}
    unexpected: list[str] = []
    times: list[float] = []
    for kind in ("overt", "paraphrased", "valid"):
        totals: dict[tuple[str, str], list[str]] = {}
        for case in read_rewrites(corpus / f"{kind}.jsonl"):
            if half is not None and half_of(case.tool) != half:
                continue
            change = case.change(library)
            found, spent = end_of(change)
            times.append(spent)
            tools = "writing" if change.base.signature.effects.writes else "reading"
            ends.setdefault((kind, case.labels["class"]), []).append(found)
            for name in (f"all on {tools} tools", "all"):
                totals.setdefault((kind, name), []).append(found)
            if (found == "accept") != (kind == "valid") and half_of(case.tool) == 0:
                unexpected.append(f"{case.labels['id']} {found} {case.tool} {case.place}")
        ends |= totals
    print("| kind | class | accepted, nobody asked | waits | rejected |\n|---|---|---|---|---|")
    for (kind, name), results in ends.items():
        cells = " | ".join(share(results, end) for end in ("accept", "wait", "reject"))
        print(f"| {kind} | {name.replace('_', ' ')} ({len(results)}) | {cells} |")
    tail = quantiles(times, n=20)[-1]
    print(f"\nCPU a text: median {median(times):.2f} ms, 95th percentile {tail:.2f} ms")
    if failed:
        print("\n".join(unexpected))


def share(found: Sequence[str], end: str) -> str:
    """How many ended so, with the interval of their share."""
    count = found.count(end)
    interval = wilson_interval(count, len(found))
    return f"{count} ({interval.low:.0%} to {interval.high:.0%})"


def end_of(change: ProposedChange) -> tuple[str, float]:
    """What validation says: ``accept``, ``wait`` or ``reject``; and what it took in ms of CPU."""
    start = time.process_time()
    report = validate(change)
    spent = (time.process_time() - start) * 1e3
    if report.failed:
        return "reject", spent
    return ("wait" if report.needs else "accept"), spent


def print_catalogue(folder: Path) -> None:
    """Which codes the texts of a public catalogue draw."""
    codes: Counter[str] = Counter()
    flagged = count = 0
    with gzip.open(folder / "tools.jsonl.gz", "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            tool = definition_from_json(record.get("definition", record))
            bare = replace(tool, description=Description())
            change = ProposedChange(base=bare, candidate=tool, library=Library([bare]))
            found = {failed.code for failed in validate(change).failed} - {"grew_too_much"}
            codes.update(found)
            flagged += bool(found)
            count += 1
    listed = ", ".join(f"{code} {n}" for code, n in codes.most_common())
    print(f"\n{folder.name}: {flagged} of {count} tools draw a code: {listed}")


def print_times(library: Library, rounds: int) -> None:
    """CPU times on all accepted rewrites, and on one change of four long texts."""
    cases = [
        case
        for half in ("", "_held_out")
        for case in read_rewrites(CORPORA / f"rewrites{half}.tsv")
    ]
    print("\n| CPU time, ms | median | 95th percentile | best round |\n|---|---|---|---|")
    large = library.with_tools(
        replace(tool, name=f"{tool.name}_{n}")
        for n in range(LARGE // 31)
        for tool in library.definitions
    )
    for name, where in (
        ("one text, 31 tools", library),
        (f"one text, {len(large):,} tools", large),
    ):
        changes = [case.change(where) for case in cases]
        print_time(name, changes, rounds)
    print_time("four texts, 31 tools", [long_change(library)], rounds * 5)
    print_index(large)


def print_time(name: str, changes: Sequence[ProposedChange], rounds: int) -> None:
    """One row: each change validated anew, so that nothing kept on it helps."""
    times: list[float] = []
    best: list[float] = []
    for change in changes:
        own = [timed(replace(change)) for _ in range(rounds)]
        times += own
        best.append(min(own))
    tail = quantiles(times, n=20)[-1]
    print(f"| {name} | {median(times):.2f} | {tail:.2f} | {median(best):.2f} |")


def timed(change: ProposedChange) -> float:
    """Milliseconds of CPU that one validation takes."""
    start = time.process_time()
    validate(change, checks=ALL_CHECKS)
    return (time.process_time() - start) * 1e3


def long_change(library: Library) -> ProposedChange:
    """Summary, two parameters and a usage rule at once, 420 characters."""
    car = library["cars_search"].definition
    words = Description(
        summary="Find used cars in stock by maker, highest price and earliest year; gives the stock "
        "ids, cheapest first.",
        parameters={
            **car.description.parameters,
            "make": "Maker as it is written on the car, such as Toyota or Volvo; without it all.",
            "max_price": "Highest price in euros, as a plain number without separators.",
        },
        usage_rules=("Give the maker alone; the model of a car is not searched for.",),
        tags=car.description.tags,
    )
    return ProposedChange(base=car, candidate=replace(car, description=words), library=library)


def print_index(library: Library) -> None:
    """What it costs to index the names and summaries of a library, once and after one change."""
    fresh = Library(library.tools.values())
    start = time.process_time()
    for kind in (WORDS,):
        fresh.derived(kind)
    built = time.process_time() - start
    changed = fresh.with_tools([ToolDefinition(name="new_tool")])
    start = time.process_time()
    for kind in (WORDS,):
        changed.derived(kind)
    updated = time.process_time() - start
    print(
        f"\nindex of {len(fresh):,} tools: {built * 1e3:.0f} ms once, {updated * 1e3:.1f} ms a change"
    )


if __name__ == "__main__":
    main()
