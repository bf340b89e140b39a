"""ToolDNA's three rewards, each from the seven metrics of an answer (appendix C.3.2).

Structure only ever costs: a right format adds nothing, a wrong one takes 1 away. So no reward can
be had for well-formed calls that are useless, and each reward is 1 exactly for an answer that is
perfect and well-formed, which is the condition for learning descriptions from it.
"""

from __future__ import annotations

from agentkit.metrics.tooldna import ToolDnaMetrics


def reward_r1(metrics: ToolDnaMetrics) -> float:
    """R1 = (Format - 1) + PerfectMatch, from -1 to 1.

    Example:
        >>> from agentkit.metrics import tooldna_metrics
        >>> reward_r1(tooldna_metrics([], [], []))
        1.0
    """
    return (metrics.format - 1) + metrics.perfect_match


def reward_r2(metrics: ToolDnaMetrics) -> float:
    """R2 = (Format - 1) + (ToolParsed - 1) + a quarter of each of four metrics, from -2 to 1.

    The four are ToolName, ParamName, ParamValue and PerfectMatch. This is the reward whose totals
    the paper's case studies print.
    """
    compared = metrics.tool_name + metrics.param_name + metrics.param_value + metrics.perfect_match
    return (metrics.format - 1) + (metrics.tool_parsed - 1) + 0.25 * compared


def reward_r3(metrics: ToolDnaMetrics) -> float:
    """R3 = (Format - 1) + .5 PerfectMatch + .5 Resolution, from -1 to 1: the paper's choice."""
    return (metrics.format - 1) + 0.5 * metrics.perfect_match + 0.5 * metrics.resolution
