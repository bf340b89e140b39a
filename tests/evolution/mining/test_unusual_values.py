"""Whatever values and keys episodes hold, what is mined from them is a program."""

from __future__ import annotations

import json
import math

from hypothesis import given, settings, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.composites.checks import check_program
from agentkit.composites.codec import program_from_json, program_to_json
from agentkit.evolution.lifting import LiftingConfig
from agentkit.evolution.mining import MiningConfig, mine
from agentkit.evolution.patterns import SearchLimits
from agentkit.evolution.trajectories import Flow, Given, Step, Trajectory
from agentkit.library.pins import library_faults
from agentkit.tools.definition import Effects

TOOLS = {
    name: ToolDefinition.from_schema(
        name,
        f"Does {name}.",
        {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"]},
        effects=Effects(reads=True, writes=False),
    )
    for name in ("first", "second")
}
UNUSUAL = [-1, -0.0, -2.5, 1e300, -(2**60), 2**300, 2**5_000, math.nan, -math.inf, "", "\ud800"]
UNUSUAL += ["long " * 2_000, None, True, [-1], {"k": -1}, {"\ud800": 1}, {1: 2}]
KEYS = ["x", -1, 0, "", "\ud800", "key " * 100, "a" * 9_000, '"]); evil("']


def corpus(constant, key):
    """Five episodes that pass a part of one result on, beside a value that never varies."""
    made = []
    for number in range(5):
        result = [f"r{number}"] if isinstance(key, int) else {key: f"r{number}"}
        one = Step(
            tool="first",
            sources={"a": Given(value=f"n{number}"), "b": Given(value=constant)},
            result=result,
        )
        other = Step(
            tool="second",
            sources={"a": Flow(step=0, path=(key,)), "b": Given(value=constant)},
            result=f"done {number}",
        )
        made.append(Trajectory(trajectory_id=f"e{number}", steps=(one, other)))
    return made


@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from(UNUSUAL) | st.integers() | st.floats() | st.text(),
    st.sampled_from(KEYS) | st.text(max_size=5),
    st.sampled_from(["default", "keep", "parameter"]),
)
def test_what_is_mined_is_a_program(constant, key, policy):
    """Every mined program is read back from its data as it is, and keeps the rules."""
    rules = MiningConfig(
        search=SearchLimits(min_support=2), lifting=LiftingConfig(constants=policy, same_over=2)
    )
    for composite in mine(corpus(constant, key), TOOLS, rules).composites:
        program = composite.lifting.program
        data = json.loads(json.dumps(program_to_json(program)))
        assert program_from_json(data, name=composite.name) == program
        assert check_program(program, Library(TOOLS.values()).tools, name=composite.name) == ()
        assert len(composite.definition.digest) == 64
        library = Library([*TOOLS.values(), composite.definition])
        assert library_faults(library) == ()
