"""Solutions that mend a refused call: what a policy learns from before rewards can teach it to mend.

Four tools that no experiment asks about. The texts of two tell what they demand, and their solutions
are right at once; the others' say nothing, so that a solution guesses (what the swapped world
demands), is refused, and does what the refusal says.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from agentkit.evaluation import FinalState, Task
from agentkit.evaluation.task_files import task_to_json
from agentkit.interop.export import artifact_of, write_artifact
from agentkit_training.files import whole_file
from agentkit_training.tasks.hidden_constraints.family import (
    HiddenWorld,
    gold_calls,
    hidden_constraints,
    library_of,
    tool_of,
)
from agentkit_training.tasks.hidden_constraints.tools import TOOLS, ConstraintKind

_GUESSED: ConstraintKind = "form"
_KINDS: tuple[ConstraintKind, ...] = (_GUESSED, "condition", "requires")
_EACH = 48


def world(_task: Task) -> HiddenWorld:
    """The first world, for ``tasks.environment``."""
    return HiddenWorld([name for name, tool in TOOLS.items() if tool.kind in _KINDS], "first")


def write_mending(folder: Path) -> None:
    """Write ``mending.jsonl``, the tasks, and ``mending.json``, the texts that they are asked under."""
    right, guessed = (
        hidden_constraints(asked, kinds=_KINDS, train=_EACH, judged="world").train.tasks
        for asked in ("first", "swapped")
    )
    lines = []
    for task, guess in zip(right, guessed, strict=True):
        before = gold_calls(guess) if tool_of(task).kind == _GUESSED else ()
        solved = FinalState(calls=(*before, *gold_calls(task)))
        lines.append(json.dumps(task_to_json(replace(task, expects=(solved,)))) + "\n")
    with whole_file(folder / "mending.jsonl") as draft:  # other seeds and arms may read it now
        draft.write_text("".join(lines), encoding="utf-8")
    told = library_of("rules", names=[name for name, one in TOOLS.items() if one.kind != _GUESSED])
    write_artifact(artifact_of(library_of("fixed").with_tools(told)), folder / "mending.json")
