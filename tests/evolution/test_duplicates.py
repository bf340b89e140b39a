"""When two tools are the same."""

from __future__ import annotations

import pytest

from agentkit import tool
from agentkit.evolution.insertion import Added, Merged
from agentkit.tools.definition import Effects

# --- Keys and forms by which like tools are found, and the arguments that they are tried with ----


NUMBER, TEXT = {"type": "number"}, {"type": "string"}


# --- What counts as the same tool, and what does not ---------------------------------------------


def source(name, body, *, words="Total price of an order.", parameters="price: float, count: int",
           examples=(((2.5, 4), 11.0),), **given):  # fmt: skip
    """The text of a composite."""
    names = [parameter.split(":")[0].strip() for parameter in parameters.split(",")]
    worked = [
        {"arguments": dict(zip(names, values, strict=True)), "result": result}
        for values, result in examples
    ]
    options = ", ".join(f"{key}={value!r}" for key, value in given.items())
    return (
        f"@composite(examples={worked!r}, {options})\n"
        f'def {name}({parameters}) -> float:\n    """{words}"""\n    {body}\n'
    )


TOTAL = source("order_total", "return add(mul(price, count), 1)")


def test_the_same_program_under_other_names_is_merged(manager):
    """Names of the function, its parameters and variables make no difference, nor their words."""
    manager.insert(
        TOTAL.replace("return add(mul", "whole = mul(price, count)\n    return add(whole, 1) #")
    )
    renamed = source(
        "bill",
        "both = mul(each, number)\n    return add(both, 1)",
        parameters="each: float, number: int",
        words="Something else entirely.",
        examples=[((3.0, 2), 7.0)],
    )
    outcome = manager.insert(renamed)
    assert isinstance(outcome, Merged)
    assert outcome.reason == "it is the same program"
    assert outcome.parameters == {"each": "price", "number": "count"}
    assert outcome.examples_moved == 1


def test_swapped_parameters_of_one_type_are_told_apart(manager):
    """Which parameter means which is found by behaviour, not by order."""
    manager.insert(source("gap", "return mul(sub(a, b), 2)", parameters="a: float, b: float",
                          words="Twice the difference.", examples=[((5.0, 2.0), 6.0)]))  # fmt: skip
    outcome = manager.insert(
        source("twice_gap", "return add(sub(y, x), sub(y, x))", parameters="x: float, y: float",
               words="The difference twice.", examples=[((1.0, 4.0), 6.0)])
    )  # fmt: skip
    assert isinstance(outcome, Merged)
    assert outcome.parameters == {"x": "b", "y": "a"}


@pytest.mark.parametrize(
    ("body", "given"),
    [
        ("return add(mul(price, count), 2)", {"examples": (((2.5, 4), 12.0),)}),
        (
            "return add(mul(price, count), 1)",
            {"pre": ["price > 0"], "examples": (((9.0, 1), 10.0),)},
        ),
    ],
)
def test_another_behaviour_or_contract_makes_another_tool(manager, body, given):
    """Other results on one probe keep two tools apart, or an own contract in other words."""
    manager.insert(TOTAL)
    other = source("order_sum", body, **given)
    outcome = manager.insert(other)
    assert isinstance(outcome, Added if "pre" not in given else Merged)


def test_results_that_never_differ_show_nothing(manager):
    """Two tools that give one result for every call tried need not be the same."""
    manager.insert(
        source("nothing_here", "return mul(0, mul(price, count))", examples=(((2, 4), 0),))
    )
    other = source("nothing_there", "return mul(mul(count, price), 0)", examples=(((3, 5), 0),))
    assert isinstance(manager.insert(other), Added)


def test_equal_behaviour_under_unlike_words_is_another_tool(manager):
    """A dozen equal results show little where the words say something else."""
    unlike = source("fortnight", "return add(1, mul(count, price))", words="Zebra crossing.")
    manager.insert(TOTAL)
    assert isinstance(manager.insert(unlike), Added)


def test_a_wrapper_around_one_tool_is_that_tool(make_manager):
    """Passing arguments on adds nothing, even where the tool can not be run."""

    @tool(effects=Effects(reads=True, writes=False),
          examples=[{"arguments": {"city": "Oslo"}, "result": 7.5}])  # fmt: skip
    def temperature(city: str) -> float:
        """Temperature in a city."""
        raise AssertionError(city)

    manager = make_manager(temperature)
    outcome = manager.insert('''
@composite(examples=[{"arguments": {"place": "Oslo"}, "result": 7.5}])
def how_warm(place: str) -> float:
    """How warm it is."""
    return temperature(city=place)
''')
    assert isinstance(outcome, Merged)
    assert outcome.into == "temperature"
    assert outcome.examples_moved == 0
