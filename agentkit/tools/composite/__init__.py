"""The composite language: programs over tools, as data. Nothing here runs text as Python.

A lazy door: the nodes of programs cost more to import than all the rest of an agent, and most
agents have no composite. A function that is called like its module (``render``) is not offered
here: importing the module would put it in the function's place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.tools.composite.binding import composite_tool
    from agentkit.tools.composite.checks import check_program
    from agentkit.tools.composite.codec import program_digest, program_from_json, program_to_json
    from agentkit.tools.composite.contracts import Conditions, check_post, check_pre
    from agentkit.tools.composite.expr import Expr
    from agentkit.tools.composite.expressions import Expression
    from agentkit.tools.composite.interpreter import Composite, TracedCall
    from agentkit.tools.composite.limits import READING_LIMITS, CompositeLimits
    from agentkit.tools.composite.parser import ParsedSource, parse, parse_expression
    from agentkit.tools.composite.paths import shortest_path
    from agentkit.tools.composite.problems import RUN_CODES
    from agentkit.tools.composite.source import compose

__all__ = [
    "READING_LIMITS",
    "RUN_CODES",
    "Composite",
    "CompositeLimits",
    "Conditions",
    "Expr",
    "Expression",
    "ParsedSource",
    "TracedCall",
    "check_post",
    "check_pre",
    "check_program",
    "compose",
    "composite_tool",
    "parse",
    "parse_expression",
    "program_digest",
    "program_from_json",
    "program_to_json",
    "shortest_path",
]

__getattr__ = lazy_door(
    __name__,
    {
        "READING_LIMITS": "agentkit.tools.composite.limits",
        "RUN_CODES": "agentkit.tools.composite.problems",
        "Composite": "agentkit.tools.composite.interpreter",
        "CompositeLimits": "agentkit.tools.composite.limits",
        "Conditions": "agentkit.tools.composite.contracts",
        "Expr": "agentkit.tools.composite.expr",
        "Expression": "agentkit.tools.composite.expressions",
        "ParsedSource": "agentkit.tools.composite.parser",
        "TracedCall": "agentkit.tools.composite.interpreter",
        "check_post": "agentkit.tools.composite.contracts",
        "check_pre": "agentkit.tools.composite.contracts",
        "check_program": "agentkit.tools.composite.checks",
        "compose": "agentkit.tools.composite.source",
        "composite_tool": "agentkit.tools.composite.binding",
        "parse": "agentkit.tools.composite.parser",
        "parse_expression": "agentkit.tools.composite.parser",
        "program_digest": "agentkit.tools.composite.codec",
        "program_from_json": "agentkit.tools.composite.codec",
        "program_to_json": "agentkit.tools.composite.codec",
        "shortest_path": "agentkit.tools.composite.paths",
    },
)
