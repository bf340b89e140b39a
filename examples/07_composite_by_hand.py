"""Composites, by hand: tools made of tools, with a contract, called by a model.

A composite is data: the text of the function is read, checked and kept as a small program, and
the function itself is never run. Run it: python examples/07_composite_by_hand.py
"""

from __future__ import annotations

from agentkit import Agent, composite
from agentkit.errors import ContractViolation
from agentkit.library.dag import depth, flat_size
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel, primitive_library

add, div, mul, pow_int, round_to, sub = (
    primitive_library()[name] for name in ("add", "div", "mul", "pow_int", "round_to", "sub")
)


@composite(
    pre=["price > 0", "percent >= 0", "months >= 1"],
    post=["result * months >= price - 0.01 * months"],
    examples=[{"arguments": {"price": 12000, "percent": 0, "months": 48}, "result": 250.0}],
    contracts="always",
)
def car_rate(price: float, percent: float, months: int) -> float:
    """Monthly rate of a car on credit, in equal parts.

    Args:
        price: Amount of the credit.
        percent: Interest a year in percent: 4.8 means 4.8 %.
        months: How many rates there are.
    """
    rate: float = div(price, months)
    if percent > 0:
        interest = div(percent, 1200)
        growth = pow_int(add(1, interest), months)
        rate = div(mul(mul(price, interest), growth), sub(growth, 1))
    cents: float = round_to(rate, 2)
    return cents


@composite
def car_cost(price: float, percent: float, months: int, insurance: float, fuel: float) -> float:
    """What a car on credit costs a month, all in all.

    Args:
        price: Amount of the credit.
        percent: Interest a year in percent.
        months: How many rates there are.
        insurance: Insurance a year.
        fuel: Fuel a month.
    """
    rate = car_rate(price, percent, months)
    total: float = round_to(add(rate, add(div(insurance, 12), fuel)), 2)
    return total


library = primitive_library().with_tools([car_rate, car_cost])
for name in ("mul", "car_rate", "car_cost"):
    facts = depth(library, name), flat_size(library, name)
    print("{:9} depth {}, stands for {} primitive calls".format(name, *facts))

children = [child.name for child in car_cost.definition.signature.children]
print("car_cost calls", ", ".join(children), "and changes nothing:", end=" ")
print(car_cost.definition.signature.effects.is_read_only)

try:
    car_rate(price=12000, percent=4.8, months=0)
except ContractViolation as broken:
    print("refused:", broken)

arguments = {"price": 13900, "percent": 4.8, "months": 48, "insurance": 540, "fuel": 95}
script: list[str | list[ToolCall]] = [
    [ToolCall(call_id="1", name="car_cost", arguments=arguments)],
    "All in all the Yaris costs about 459 euros a month.",
]
run = Agent(ScriptedModel(script), tools=library).run_sync("What does the Yaris cost a month?")
print("car_cost gives", run.episode.results[0].value)
print(run.output)
