"""Tools whose schemas are no JSON are scored like others."""

from __future__ import annotations

import pytest

from agentkit import ToolDefinition
from agentkit.messages import ToolCall
from agentkit.metrics import (
    AllowedCall,
    call_overlap,
    calls_equal,
    match_allowed_values,
    tooldna_metrics,
)
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
    assert tooldna_metrics(gold, gold, [tool]).perfect_match == 1
    assert tooldna_metrics(near, gold, [tool]).param_value == 0.5
    assert call_overlap(near, gold, [tool]).score == 0
    assert calls_equal(gold, gold, [tool])
    allowed = [AllowedCall(name="wait", allowed={"why": ["rain today"]})]
    assert match_allowed_values(gold, allowed, [tool]).passed
    assert not match_allowed_values(near, allowed, [tool]).passed
