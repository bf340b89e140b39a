"""What holds for every corpus: programs, counts and rewritings, checked on random ones."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from functools import partial

from hypothesis import given, settings, strategies as st

from agentkit import ToolDefinition
from agentkit.composites.composite import composite_tool
from agentkit.evolution.mining import MiningConfig, mine
from agentkit.evolution.trajectories import Flow, Given, Step, Trajectory
from agentkit.tools.definition import Effects
from agentkit.tools.tool import Tool

SIZES = {"alpha": 1, "beta": 2, "gamma.delta": 1, "omega": 2}
NUMBER = {"type": ["string", "integer"]}
TOOLS = {
    name: ToolDefinition.from_schema(
        name,
        f"Does {name}.",
        {
            "type": "object",
            "properties": {f"p{at}": NUMBER for at in range(count)},
            "required": [f"p{at}" for at in range(count)],
        },
        effects=Effects(writes=False) if name != "omega" else Effects(),
    )
    for name, count in SIZES.items()
}


@st.composite
def shapes(draw):
    """Which tools are called in turn, and where each argument comes from."""
    shape = []
    for position in range(draw(st.integers(1, 6))):
        tool = draw(st.sampled_from(sorted(SIZES)))
        sources = {}
        for at in range(SIZES[tool]):
            if position and draw(st.integers(0, 3)):
                earlier = draw(st.integers(0, position - 1))
                path = (draw(st.sampled_from(["x", "y"])), 0)
                sources[f"p{at}"] = Flow(step=earlier, path=path)
            else:
                sources[f"p{at}"] = None
        shape.append((tool, sources))
    return shape


def filled(name, shape, values):
    """A trajectory of a shape: a call answers by its arguments and by what was changed before."""
    steps, changes = [], 0
    for position, (tool, sources) in enumerate(shape):
        changes += tool == "omega"
        made = {
            key: source or Given(value=values[2 * position + at])
            for at, (key, source) in enumerate(sources.items())
        }
        step = Step(tool=tool, sources=made)
        known = Trajectory(trajectory_id=name, steps=(*steps, step)).arguments(position)
        told = f"{name} {tool} {changes} {sorted(known.items())}"
        steps.append(replace(step, result={"x": [f"x {told}"], "y": [f"y {told}"]}))
    return Trajectory(trajectory_id=name, steps=tuple(steps))


@st.composite
def corpora(draw):
    """Short trajectories over four tools, one of which may change something; shapes recur."""
    known = draw(st.lists(shapes(), min_size=1, max_size=3))
    trajectories = []
    for number in range(draw(st.integers(1, 9))):
        shape = draw(st.sampled_from(known))
        values = [draw(st.sampled_from(["a", "b", 1])) for _ in range(2 * len(shape))]
        trajectories.append(filled(f"e{number}", shape, values))
    return trajectories


RULES = MiningConfig(min_support=2, max_calls=4)


@settings(max_examples=60)
@given(corpora())
def test_composites_make_the_recorded_calls(corpus):
    """Run by the interpreter on the records, composites make the same calls with the same results."""
    for composite in mine(corpus, TOOLS, RULES).composites:
        for worked in composite.worked:
            waiting = [
                (one.tool, json.dumps(one.arguments, sort_keys=True), one.result)
                for one in worked.recorded
            ]

            def answer(name, waiting=waiting, **arguments):
                key = (name, json.dumps(arguments, sort_keys=True))
                found = next(one for one in waiting if one[:2] == key)
                waiting.remove(found)
                return found[2]

            children = {
                name: Tool(definition=tool, function=partial(answer, name))
                for name, tool in TOOLS.items()
            }
            made = composite_tool(composite.definition, children)
            assert made(**worked.example.arguments) == worked.example.result
            assert waiting == []


@settings(max_examples=60)
@given(corpora(), st.randoms(use_true_random=False))
def test_the_order_of_episodes_does_not_matter(corpus, chance: random.Random):
    """The same episodes in another order give the same composites, byte for byte."""
    shuffled = list(corpus)
    chance.shuffle(shuffled)
    first, second = mine(corpus, TOOLS, RULES), mine(shuffled, TOOLS, RULES)
    assert [one.definition.digest for one in first.composites] == [
        one.definition.digest for one in second.composites
    ]
    assert first == second


# --- the same, as slowly and plainly as possible --------------------------------------------------
