"""How much memory a process takes that refuses or stops every hostile program: prints MB."""

from __future__ import annotations

import contextlib
import resource
from pathlib import Path

from agentkit.composites.composite import Composite
from agentkit.composites.parser import parse
from agentkit.errors import CompositeError, CompositeRunError
from support.hostile_programs import REFUSED_PROGRAMS, STOPPED_PROGRAMS
from support.random_children import ChildrenInUse


def peak_mb() -> float:
    """Highest resident memory of this process so far, in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # ``ru_maxrss`` remembers the process that started this one
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Try every program once; one that comes through ends the process with an error."""
    children = ChildrenInUse()
    programs = [
        (parse(one.source, children.tools).program, one.arguments) for one in STOPPED_PROGRAMS
    ]
    before = peak_mb()
    for one in REFUSED_PROGRAMS:
        with contextlib.suppress(CompositeError):
            parse(one.source, children.tools)
            raise SystemExit(f"{one.name} was not refused")
    for program, arguments in programs:
        with contextlib.suppress(CompositeRunError):
            Composite(program, children.by_name, name="f").run(arguments)
            raise SystemExit("a hostile program ran to its end")
    print(peak_mb() - before)


if __name__ == "__main__":
    main()
