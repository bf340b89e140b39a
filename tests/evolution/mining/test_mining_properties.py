"""What holds for every corpus: programs, counts and rewritings, checked on random ones."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from functools import partial
from itertools import combinations, permutations

from hypothesis import given, settings, strategies as st

from agentkit import ToolDefinition
from agentkit.composites.composite import composite_tool
from agentkit.evolution.mining import MiningConfig, mine
from agentkit.evolution.patterns import PatternSearch
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
                (one.tool, json.dumps(one.arguments, sort_keys=True)) for one in worked.recorded
            ]
            answers = dict(zip(waiting, (one.result for one in worked.recorded), strict=True))

            def answer(name, waiting=waiting, answers=answers, **arguments):
                key = (name, json.dumps(arguments, sort_keys=True))
                waiting.remove(key)
                return answers[key]

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


@settings(max_examples=60)
@given(corpora())
def test_support_is_a_count(corpus):
    """The patterns found, and in how many episodes, are those that trying every group finds."""
    search = PatternSearch(corpus, lambda name: name != "omega")
    found = {
        slowest_key(pattern_text(pattern)): {one.trajectory for one in occurrences}
        for pattern, occurrences in search.frequent(min_support=2, max_calls=4).items()
    }
    expected: dict[str, set[int]] = {}
    for index, trajectory in enumerate(corpus):
        for size in range(2, 5):
            for group in combinations(range(len(trajectory.steps)), size):
                if is_connected(trajectory, group) and can_be_one(trajectory, group):
                    key = slowest_key(group_text(trajectory, group))
                    expected.setdefault(key, set()).add(index)
    assert found == {key: places for key, places in expected.items() if len(places) >= 2}


# --- the same, as slowly and plainly as possible --------------------------------------------------


def group_text(trajectory, group):
    """Calls in order: tool, and for each argument the place in the group that it comes from."""
    return tuple(
        (
            trajectory.steps[position].tool,
            tuple(
                (name, (group.index(source.step), source.path))
                if isinstance(source, Flow) and source.step in group
                else (name, None)
                for name, source in sorted(trajectory.steps[position].sources.items())
            ),
        )
        for position in group
    )


def pattern_text(pattern):
    """The same form of a pattern."""
    return tuple(
        (
            step.tool,
            tuple((name, link and (link.step, link.path)) for name, link in step.arguments),
        )
        for step in pattern.steps
    )


def comes_before(calls, first, second):
    """Whether ``first`` must run before ``second``, which stands behind it."""
    uses = any(link and link[0] == first for _, link in calls[second][1])
    return uses or "omega" in {calls[first][0], calls[second][0]}


def slowest_key(calls):
    """The smallest text over every order in which the calls can run."""
    texts = []
    for order in permutations(range(len(calls))):
        ok = all(
            order.index(a) < order.index(b)
            for a, b in combinations(range(len(calls)), 2)
            if comes_before(calls, a, b)
        )
        if ok:
            new = {old: at for at, old in enumerate(order)}
            texts.append(
                repr(
                    [
                        (
                            calls[old][0],
                            [(n, link and (new[link[0]], link[1])) for n, link in calls[old][1]],
                        )
                        for old in order
                    ]
                )
            )
    return min(texts)


def is_connected(trajectory, group):
    """Whether flows of data join all members."""
    joined, waiting = set(), [group[0]]
    while waiting:
        here = waiting.pop()
        joined.add(here)
        for other in set(group) - joined:
            for a, b in ((here, other), (other, here)):
                sources = trajectory.steps[a].sources.values()
                if any(isinstance(source, Flow) and source.step == b for source in sources):
                    waiting.append(other)
    return joined == set(group)


def can_be_one(trajectory, group):
    """Whether no call outside has to come after one member and before another."""
    count = len(trajectory.steps)
    calls = group_text(trajectory, tuple(range(count)))
    reach = {(a, b) for a, b in combinations(range(count), 2) if comes_before(calls, a, b)}
    for middle in range(count):
        reach |= {(a, b) for a, x in reach if x == middle for y, b in reach if y == middle}
    return not any(
        (a, other) in reach and (other, b) in reach
        for other in set(range(count)) - set(group)
        for a in group
        for b in group
    )
