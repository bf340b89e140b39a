"""What it costs to write, read, compare, render and import an artifact of many tools.

    python tests/benchmarks/export/artifact.py [TOOLS] [ROUNDS]

Times are CPU time of the process, the median of the rounds; wall time on a machine that others use
says little. The library is made anew for each step that would find something worked out before,
such as digests, so that every step is paid in full. The last lines of the table are sizes.
"""

from __future__ import annotations

import asyncio
import gzip
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agentkit import Library, ToolDefinition, open_store
from agentkit.evolution import ToolManager
from agentkit.interop.export import (
    Artifact,
    ImportRequest,
    artifact_of,
    artifact_text,
    import_artifact,
    parse_artifact,
)
from agentkit.interop.export.diff import compare_libraries
from agentkit.interop.export.formats import FORMATS, render
from agentkit.library import Author
from agentkit.tools.definition import Effects, Example

THINGS = ("order", "invoice", "ticket", "customer", "shipment", "contract", "payment", "account")
VERBS = ("list", "find", "count", "export", "check", "update", "close", "reopen")
PERSON = Author(kind="person", name="ada")


def definition(at: int) -> ToolDefinition:
    """One tool: four parameters with words, a result, a worked call."""
    thing, verb = THINGS[at % 8], VERBS[at // 8 % 8]
    kinds: dict[str, dict[str, Any]] = {
        "owner": {"type": "string", "description": f"Whose {thing}s to {verb}."},
        "state": {
            "type": "string",
            "enum": ["open", "paid", "shipped"],
            "description": f"Only a {thing} in this state, of those of region {at}.",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": 100,
            "default": 20,
            "description": f"Most {thing}s to give.",
        },
        "since": {
            "type": "string",
            "format": "date",
            "description": f"Only a {thing} of this day or later.",
        },
    }
    made = ToolDefinition.from_schema(
        f"{thing}_{verb}_{at}",
        f"{verb.capitalize()} the {thing}s of region {at}, newest first, with state and total.",
        {"type": "object", "properties": kinds, "required": ["owner"]},
        result={"type": "array", "items": {"type": "object"}},
        effects=Effects.of(["reads"]),
    )
    example = Example(
        arguments={"owner": "Ada", "limit": 3}, result=[], query=f"{verb} my {thing}s"
    )
    return replace(made, examples=(example,))


def catalogue(count: int, *, changed: bool = False) -> Library:
    """A library in which, when changed, every tenth tool has other words and a narrower bound."""
    tools = [definition(at) for at in range(count)]
    if changed:
        tools[::10] = [_narrowed(one) for one in tools[::10]]
    return Library(tools)


def _narrowed(tool: ToolDefinition) -> ToolDefinition:
    schema = tool.signature.parameters
    properties = dict(schema["properties"])
    properties["limit"] = properties["limit"] | {"maximum": 50}
    said = replace(
        tool.description, summary=tool.description.summary + " Closed ones are left out."
    )
    return replace(
        tool,
        description=said,
        signature=replace(tool.signature, parameters={**schema, "properties": properties}),
    )


def written(library: Library) -> str:
    """The text of the artifact of a library."""
    return artifact_text(artifact_of(library))


def imported(artifact: Artifact) -> None:
    """Bring an artifact into an empty library."""
    manager = ToolManager(open_store("memory:"), author=PERSON)
    report = asyncio.run(import_artifact(artifact, manager, ImportRequest(person=PERSON)))
    if not report.is_complete:
        raise SystemExit(f"held: {report.of('held')[:3]}")


def main() -> None:
    """Measure, and print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    spent: dict[str, list[float]] = defaultdict(list)

    def timed(name: str, work: Callable[..., Any], *given: Any, **named: Any) -> Any:
        begun = time.process_time()
        result = work(*given, **named)
        spent[name].append(time.process_time() - begun)
        return result

    text = ""
    for _ in range(rounds):
        library, other = catalogue(count), catalogue(count, changed=True)
        text = timed("write", written, library)
        read = timed("read, all digests checked", parse_artifact, text.encode())
        timed("diff, every tenth tool changed", compare_libraries, library, other)
        for name in FORMATS:
            timed(f"render {name}", render, catalogue(count), name)
        timed("import into an empty library", imported, read)
    print(f"| {count:,} tools | ms |\n|---|---|")
    for name, times in spent.items():
        print(f"| {name} | {statistics.median(times) * 1_000:,.0f} |")
    packed = gzip.compress(text.encode(), mtime=0)
    print(
        f"| size of the file | {len(text.encode()) / 1e6:.1f} MB, {len(packed) / 1e3:.0f} kB gz |"
    )


if __name__ == "__main__":
    main()
