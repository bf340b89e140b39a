"""The tools of the family, as data: twelve that demand something, and two to look things up with.

No definition states its demand, and every question holds in plain words what is needed to meet it.
The two worlds differ in the demands alone.
"""

from __future__ import annotations

from agentkit_training.tasks.hidden_constraints.hidden_tool import HiddenTool
from agentkit_training.tasks.hidden_constraints.listing_tools import listing_tools
from agentkit_training.tasks.hidden_constraints.measuring_tools import measuring_tools
from agentkit_training.tasks.hidden_constraints.relating_tools import relating_tools

TOOLS: dict[str, HiddenTool] = {
    tool.name: tool for tool in (*listing_tools(), *measuring_tools(), *relating_tools())
}
"""The tools that demand something, by name."""
