"""What a definition shows of its rules; loaded when there are some.

This is the part of ``agentkit.tools.rules`` that stands below ``ToolDefinition``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.tools.rules.codec import rule_from_json, rule_to_json
    from agentkit.tools.rules.narrowing import narrowed_schema
    from agentkit.tools.rules.sentences import rule_sentence

__all__ = ["narrowed_schema", "rule_from_json", "rule_sentence", "rule_to_json"]

__getattr__ = lazy_door(
    __name__,
    {
        "narrowed_schema": "agentkit.tools.rules.narrowing",
        "rule_from_json": "agentkit.tools.rules.codec",
        "rule_sentence": "agentkit.tools.rules.sentences",
        "rule_to_json": "agentkit.tools.rules.codec",
    },
)
