"""When two tools are the same, and what the manager writes, once, whoever else writes."""

from __future__ import annotations

import pytest

from agentkit import open_store
from agentkit.evolution.dry_run import InsertPolicy
from agentkit.evolution.manager import ToolManager
from agentkit.testing import primitive_library

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
    assert outcome.outcome == "merged"
    assert outcome.duplicate.reason == "it is the same program"
    assert outcome.duplicate.parameters == {"each": "price", "number": "count"}
    assert outcome.examples_moved == 1


def test_swapped_parameters_of_one_type_are_told_apart(manager):
    """Which parameter means which is found by behaviour, not by order."""
    manager.insert(source("gap", "return mul(sub(a, b), 2)", parameters="a: float, b: float",
                          words="Twice the difference.", examples=[((5.0, 2.0), 6.0)]))  # fmt: skip
    outcome = manager.insert(
        source("twice_gap", "return add(sub(y, x), sub(y, x))", parameters="x: float, y: float",
               words="The difference twice.", examples=[((1.0, 4.0), 6.0)])
    )  # fmt: skip
    assert outcome.outcome == "merged"
    assert outcome.duplicate.parameters == {"x": "b", "y": "a"}


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
    assert outcome.outcome == ("merged" if "pre" in given else "added")


def test_results_that_never_differ_show_nothing(manager):
    """Two tools that give one result for every call tried need not be the same."""
    manager.insert(
        source("nothing_here", "return mul(0, mul(price, count))", examples=(((2, 4), 0),))
    )
    other = source("nothing_there", "return mul(mul(count, price), 0)", examples=(((3, 5), 0),))
    assert manager.insert(other).outcome == "added"


def test_equal_behaviour_under_unlike_words_is_another_tool(manager):
    """A dozen equal results show little where the words say something else."""
    unlike = source("fortnight", "return add(1, mul(count, price))", words="Zebra crossing.")
    manager.insert(TOTAL)
    assert manager.insert(unlike).outcome == "added"


# --- The manager writes whole changes, once, whoever else writes and whatever breaks in betwe ----
# The manager writes whole changes, once, whoever else writes and whatever breaks in between.


def numbered(number, *, offset=None):
    """A composite of its own for each number."""
    return f'''
@composite(examples=[{{"arguments": {{"x": 1}}, "result": {number + (offset or number)}}}])
def plus_{number}(x: float) -> float:
    """Number {number} and {offset or number} more, by tool number {number}."""
    return add(mul(x, {number}), {offset or number})
'''


@pytest.fixture
def url(tmp_path):
    """A file that holds the primitives."""
    url = f"sqlite:///{tmp_path / 'library.db'}"
    store = open_store(url)
    ToolManager(store).register(primitive_library())
    store.close()
    return url


def manager_at(url):
    """A manager of its own over the file."""
    return ToolManager(open_store(url), tools=primitive_library(), author=f"manager {id(url)}")


def test_a_stale_manager_merges_into_what_the_other_added(url):
    """The same tool from two managers is added once, and merged the second time."""
    one, other = manager_at(url), manager_at(url)
    assert one.insert(numbered(2)).outcome == "added"
    twin = (
        numbered(2)
        .replace("plus_2", "twin")
        .replace('"x": 1}, "result": 4', '"x": 2}, "result": 6')
    )
    outcome = other.insert(twin)
    assert outcome.outcome == "merged"
    assert (outcome.duplicate.name, outcome.examples_moved) == ("plus_2", 1)


def test_a_revision_replaces_and_what_stands_above_follows(url):
    """A revision that keeps what others rely on is taken, and its parents pin it anew."""
    manager = ToolManager(
        open_store(url), tools=primitive_library(), policy=InsertPolicy(allow_revisions=True)
    )
    manager.insert(numbered(2))
    manager.insert('''
@composite(examples=[{"arguments": {"x": 1}, "result": 8}])
def twice(x: float) -> float:
    """Two of them."""
    return add(plus_2(x), plus_2(x))
''')
    revised = numbered(2).replace("add(mul(x, 2), 2)", "mul(add(x, 1), 2)")
    outcome = manager.insert(revised)
    assert outcome.outcome == "added"
    assert outcome.is_revision
    assert outcome.repinned == ("twice",)
    held = manager_at(url).library
    (pin,) = [pin for pin in held["twice"].definition.signature.children if pin.name == "plus_2"]
    assert pin.digest == outcome.definition.digest
    assert manager.library["twice"](x=2) == held["twice"](x=2) == 12
