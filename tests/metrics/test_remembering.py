"""Tools whose schemas are no JSON are scored like others."""

from __future__ import annotations

import pytest

from agentkit import ToolDefinition
from agentkit.messages import ToolCall
from agentkit.metrics import AllowedCall, calls_equal, match_allowed_values
from agentkit.tools import Signature


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_default_that_is_no_json_does_not_end_the_scoring(number):
    """A definition without a digest is read anew each time, and calls are graded as ever."""
    properties = {"days": {"type": "number", "default": number}, "why": {"type": "string"}}
    schema = {"type": "object", "properties": properties}
    tool = ToolDefinition(name="wait", signature=Signature(parameters=schema))
    with pytest.raises(ValueError, match="not JSON data"):
        hash(tool)
    gold = [ToolCall(call_id="1", name="wait", arguments={"why": "rain today"})]
    near = [ToolCall(call_id="2", name="wait", arguments={"why": "rain"})]
    assert calls_equal(gold, gold, [tool])
    allowed = [AllowedCall(name="wait", allowed={"why": ["rain today"]})]
    assert match_allowed_values(gold, allowed, [tool]).passed
    assert not match_allowed_values(near, allowed, [tool]).passed
