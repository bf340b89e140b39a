"""What the Tool Manager took up in the runs of ``hidden_constraints.py``, beside what is right.

Run it after them::

    python tests/benchmarks/effects/learned_rules.py --output effects

A rule is ``right`` when it takes what the tool takes, of all values that either world's questions
ask for and their neighbours; ``lax`` when it takes more, ``wrong`` when it refuses what the tool
takes. Tools without a rule have a line. A unit that the rule does not tell is named.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from agentkit.tools.rules import Between, Form, OneOf, Rule
from agentkit.tools.rules.checking import holds
from agentkit_training.export.handover import load_handover
from agentkit_training.jobs.ending import HANDOVER
from agentkit_training.tasks.hidden_constraints.catalogue import TOOLS
from agentkit_training.tasks.hidden_constraints.hidden_tool import WORLDS, HiddenTool, World

RUNS: dict[str, World] = {
    "coevolved": "first",
    "alone": "first",
    "shuffled": "first",
    "swapped": "swapped",
    "followed": "swapped",
}
KINDS = frozenset({"enum", "unit"})


def values_of(tool: HiddenTool, parameter: str) -> Iterator[str | int]:
    """What the questions of both worlds ask for, and the numbers beside it."""
    (slot,) = (slot for slot in tool.slots if slot.name == parameter)
    for filling in slot.fillings:
        for world in WORLDS:
            value = filling.gold[world][parameter]
            yield value
            if isinstance(value, int):
                yield from (value - 1, value + 1, value + value // 2, value * 10)


def judged(tool: HiddenTool, rules: tuple[Rule, ...], world: World) -> str:
    """How the rules of a tool compare with what it demands."""
    demand = tool.demands[world]
    wanted = demand.rule
    assert isinstance(wanted, OneOf | Between)  # of the kinds asked about
    name = wanted.parameter
    found = [one for one in rules if isinstance(one, OneOf | Between | Form)]
    if not found:
        return "-"
    tried = list(dict.fromkeys(values_of(tool, name)))
    taken = [value for value in tried if demand.takes({name: value}, ())]
    ours = [value for value in tried if all(holds(one, value) for one in found)]
    if not set(taken) <= set(ours):
        return "wrong"
    told = "right" if set(ours) == set(taken) else "lax"
    units = [one.unit for one in found if isinstance(one, Between)]
    return told if not isinstance(wanted, Between) or any(units) else f"{told}, unit unsaid"


def main() -> None:
    """Print a line for each tool and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    tools = [tool for tool in TOOLS.values() if tool.kind in KINDS]
    for folder in sorted(path for path in given.output.iterdir() if path.is_dir()):
        for run, world in RUNS.items():
            place = folder / run / HANDOVER
            artifact = load_handover(place).artifact if place.exists() else None
            if artifact is None:
                continue
            for tool in tools:
                told = artifact.library[tool.name].definition.specification
                rules = () if told is None else tuple(told.rules)
                print(f"{folder.name:4} {run:10} {tool.name:14} {judged(tool, rules, world)}")


if __name__ == "__main__":
    main()
