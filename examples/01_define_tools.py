"""Stage 1, tools: from a function and from a schema found in the wild, to definitions.

Run it: python examples/01_define_tools.py
"""

from __future__ import annotations

from typing import Literal

from agentkit import tool
from agentkit.tools import definition_from_json


@tool(effects=("reads",), tags=("weather",))
def get_weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """Look up today's weather.

    Args:
        city: Name of the city, in English.
        unit: Scale of the temperature.
    """
    return f"18 degrees {unit} and sunny in {city}"


# A dialect of JSON Schema as benchmarks and old catalogues write it.
FOUND = {
    "name": "math.hypot",
    "description": "Length of the hypotenuse.",
    "parameters": {
        "type": "dict",
        "properties": {"a": {"type": "float"}, "b": {"type": "float"}},
        "required": ["a", "b"],
    },
}

print(get_weather(city="Lyon"))
print(get_weather.definition.parameters_schema)
print("digest", get_weather.definition.digest[:12])

hypot = definition_from_json(FOUND)
print(hypot.signature.parameters, "was", hypot.origin.original)
