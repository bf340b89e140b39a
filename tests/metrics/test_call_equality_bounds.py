"""Calls that are too deep or too long for the schema are compared as they are written."""

from __future__ import annotations

import pytest

from agentkit import ToolDefinition
from agentkit.messages import ToolCall
from agentkit.metrics import calls_equal, canonical_calls

FIND = ToolDefinition.from_schema("find", "Find.", {"properties": {"x": {}}})


def call(value):
    return ToolCall(call_id="1", name="find", arguments={"x": value})


def nested(innermost, levels=900):
    for _ in range(levels):
        innermost = [innermost] if levels % 2 else {"a": innermost}
    return innermost


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(nested(1), nested(2), id="objects"),
        pytest.param(nested(1, 901), nested(2, 901), id="lists"),
        pytest.param(nested([1, [2]]), nested([[1], 2]), id="places"),
        pytest.param(10**5000, 10**5000 + 1, id="digits"),
        pytest.param({"n": 10**5000, "t": "a b"}, {"n": 10**5000, "t": "a  b"}, id="texts"),
    ],
)
def test_only_the_same_arguments_are_equal(one, other):
    """No exception, no two different calls that count as the same."""
    assert calls_equal([call(one)], [call(one)], [FIND])
    assert not calls_equal([call(one)], [call(other)], [FIND])
    assert canonical_calls([call(one)], [FIND])[0].is_malformed
