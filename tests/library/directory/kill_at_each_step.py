"""A program that has a commit killed at each of its steps in turn, and looks at what it leaves.

``python kill_at_each_step.py FOLDER`` prints JSON. Not a test module: a test runs it in a process of
its own, because it forks. A step is whatever Python reports of files: opening, linking, renaming and
deleting them.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

from agentkit import ToolDefinition
from agentkit.library import LibraryChange
from agentkit.library.directory import DirectoryStore
from agentkit.library.events import Author, EventDraft, chained
from agentkit.tools.definition import Description

AT = "2026-11-21T10:00:00+00:00"


def tool(name: str, summary: str) -> ToolDefinition:
    """A tool of some words."""
    return ToolDefinition(name=name, description=Description(summary=summary))


FIRST = LibraryChange(
    proposal_id="first", upserts=(tool("kept", "1"), tool("gone", "1"), tool("Edited", "1"))
)
SECOND = LibraryChange(
    proposal_id="second",
    upserts=(tool("kept", "2"), tool("new", "2")),
    removals=("gone",),
    events=chained(
        None, [EventDraft(kind="written", author=Author(kind="person", name="A"))], at=AT
    ),
)
BY_HAND = b"name: Edited\ndescription: {summary: by hand}\n"


def edited_file(folder: Path) -> Path:
    """The file that a person changed before the commit."""
    (path,) = (folder / "tools").glob("edited--*.yaml")
    return path


def commit_until(folder: Path, step: int) -> bool:
    """Commit in a fork that dies at a step; whether it died."""
    child = os.fork()
    if child == 0:
        seen = 0

        def look(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal seen
            if event in {"open", "os.link", "os.rename", "os.remove"} and str(folder) in str(
                arguments
            ):
                seen += 1
                if seen == step:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(look)
        with closing(DirectoryStore(folder)) as store:
            store.commit(SECOND, expected_version=1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in {0, -signal.SIGKILL}:
        raise RuntimeError(f"the writer ended by itself: {code}")
    return code != 0


def look(folder: Path) -> str:
    """Whether the change was made; either way all is whole, and nothing is lost."""
    with closing(DirectoryStore(folder)) as store:  # brings the files up to date
        made = store.load().version == 2
        faults = [fault for fault in store.check() if "edited" not in fault.place]
        names = sorted(path.stem.split("--")[0] for path in (folder / "tools").iterdir())
        expected = ["edited", "kept", "new"] if made else ["edited", "gone", "kept"]
        (edit,) = store.edits()
        if faults or names != expected or len(store.events()) != made:
            raise RuntimeError(f"made {made}: {faults}, {names}, {store.events()}")
        if edited_file(folder).read_bytes() != BY_HAND or edit != edited_file(folder):
            raise RuntimeError(f"the edit by hand was lost: {edit}")
        if store.commit(SECOND, expected_version=1) != 2 or len(store.load(1)) != 3:
            raise RuntimeError("the change cannot be sent again")
        if "summary: '2'" not in (folder / "tools" / "kept.yaml").read_text().replace('"', "'"):
            raise RuntimeError("the file of a tool is behind")
    return "made" if made else "not made"


def main(folder: str) -> None:
    """Kill the commit at every step there is."""
    base = Path(folder) / "base"
    with closing(DirectoryStore(base)) as store:
        store.commit(FIRST, expected_version=0)
    edited_file(base).write_bytes(BY_HAND)
    found: Counter[str] = Counter()
    step = 0
    while True:
        step += 1
        copy = Path(folder) / f"step-{step}"
        shutil.copytree(base, copy)
        died = commit_until(copy, step)
        found[look(copy)] += 1
        shutil.rmtree(copy)
        if not died:
            break
    sys.stdout.write(json.dumps({**found, "steps": step}))


if __name__ == "__main__":
    main(*sys.argv[1:])
