"""What a provider takes of strict tools in one request, all of them together."""

from __future__ import annotations

from dataclasses import dataclass

from agentkit.evaluation.doctor.parts import parts
from agentkit.export.renderers.strict import StrictMode
from agentkit.messages import JsonObject


@dataclass(kw_only=True, slots=True)
class StrictRequest:
    """Counts what the strict tools of one request come to.

    Attributes:
        mode: What the provider takes.
        tools: How many tools are strict so far.
        optional: How many parameters of these are optional.
        unions: How many of their parameters have several types.
    """

    mode: StrictMode
    tools: int = 0
    optional: int = 0
    unions: int = 0

    def takes(self, schema: JsonObject) -> str:
        """Count one more tool; why it has no place in the request, or empty when it has.

        Args:
            schema: Of its arguments, as ``strict_schema`` made it.
        """
        every = [part.schema for part in parts(schema)]
        tools = self.tools + 1
        optional = self.optional + sum(
            len(one.get("properties", ())) - len(one.get("required", ())) for one in every
        )
        unions = self.unions + sum(
            "anyOf" in one or isinstance(one.get("type"), list) for one in every
        )
        for what, number, most in (
            ("strict tools", tools, self.mode.most_tools),
            ("optional parameters", optional, self.mode.most_optional),
            ("parameters of several types", unions, self.mode.most_unions),
        ):
            if most is not None and number > most:
                return f"it would be {number:,} {what} in one request, where {most:,} are taken"
        self.tools, self.optional, self.unions = tools, optional, unions
        return ""
