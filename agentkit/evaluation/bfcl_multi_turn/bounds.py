"""Calls that a simulated tool would work on for hours.

Arithmetic on whole numbers of a billion digits can not be interrupted: while it runs, no timeout
fires and the whole program stands still. And a hundred copies of directories into each other make
a tree of billions of files out of a few. The bounds are far above what any question needs.
"""

from __future__ import annotations

from agentkit.evaluation.bfcl_multi_turn.observing import size_of
from agentkit.messages import JsonObject

MAX_PRECISION = 10_000
"""Digits that ``logarithm`` and ``square_root`` are asked for."""

MAX_BITS = 1_000_000
"""Size of the result of ``power``. Python writes no integer above some 14,000 bits anyway."""


MAX_SIZE = 10_000
"""Values in a file system of which something may still be copied; questions start below 500."""


def refusal(tool: str, arguments: JsonObject, simulator: object) -> str | None:
    """Why a call is not run, in words for the model; None when it can be.

    Args:
        tool: The tool that is called.
        arguments: What with.
        simulator: The instance that the tool acts on.
    """
    match tool:
        case "cp":
            full = size_of(simulator) > MAX_SIZE
            return "The file system is full; nothing more can be copied." if full else None
        case "logarithm" | "square_root":
            return _over("precision", arguments.get("precision"))
        case "round_number":
            return _over("decimal_places", arguments.get("decimal_places"))
        case "power":
            return _over_power(arguments.get("base"), arguments.get("exponent"))
        case _:
            return None


def _over(name: str, value: object) -> str | None:
    if isinstance(value, int) and abs(value) > MAX_PRECISION:
        return f"{name} is {_short(value)}; give at most {MAX_PRECISION}."
    return None


def _over_power(base: object, exponent: object) -> str | None:
    if not isinstance(base, int) or not isinstance(exponent, int):
        return None  # floating point overflows at once
    if exponent > 0 and abs(base) > 1 and base.bit_length() * exponent > MAX_BITS:
        return f"{_short(base)} to the power {_short(exponent)} has too many digits to be written."
    return None


def _short(value: int) -> str:
    bits = value.bit_length()
    return str(value) if bits <= 200 else f"a number of {bits} bits"
