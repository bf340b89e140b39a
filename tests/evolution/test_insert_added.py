"""InsertTool adds what is sound: depth, flat size, history, and code that runs at once."""

from __future__ import annotations

import asyncio

import pytest

from agentkit import tool
from agentkit.errors import UsageError
from agentkit.evolution import Added, InsertPolicy, ToolManager
from agentkit.tools.definition import Effects

PURE = Effects(reads=False, writes=False, destructive=False, open_world=False)

ORDER_TOTAL = '''
@composite(examples=[{"arguments": {"price": 4, "count": 3, "fee": 2}, "result": 14}])
def order_total(price: float, count: int, fee: float) -> float:
    """What an order costs with its fee."""
    return add(mul(price, count), fee)
'''

TWO_ORDERS = '''
@composite(examples=[{"arguments": {"first": 4, "second": 1}, "result": 12}])
def two_orders(first: float, second: float) -> float:
    """What two orders of two pieces cost together, each with a fee of one."""
    return add(order_total(first, 2, 1), order_total(second, 2, 1))
'''


def test_a_sound_text_is_added_with_its_place_in_the_dag(manager, store):
    """The outcome tells version, depth, flat size, saved calls and pinned children."""
    outcome = manager.insert(ORDER_TOTAL, evidence=["e-1"], reason="seen twice")
    assert isinstance(outcome, Added)
    assert (outcome.version, outcome.depth, outcome.flat_size, outcome.saved_calls) == (2, 1, 2, 1)
    stored = store.load()["order_total"].definition
    assert stored == outcome.definition
    assert [child.name for child in stored.signature.children] == ["add", "mul"]
    assert all(
        store.load()[c.name].definition.digest == c.digest for c in stored.signature.children
    )
    (revision,) = store.history("order_total")
    assert (revision.evidence, revision.reason, revision.author) == (
        ("e-1",),
        "seen twice",
        "agentkit",
    )


def test_an_added_composite_runs_and_can_be_built_on(manager):
    """The manager's library is bound at once, and the next composite stands one level higher."""
    manager.insert(ORDER_TOTAL)
    assert manager.library["order_total"](price=1.5, count=2, fee=1) == 4.0
    outcome = manager.insert(TWO_ORDERS)
    assert isinstance(outcome, Added)
    assert (outcome.depth, outcome.flat_size) == (2, 5)
    assert manager.library["two_orders"](first=4, second=1) == 12


def test_a_tool_with_code_is_added_where_the_policy_allows_primitives(make_manager):
    """A person may give a primitive; its worked calls and contract are checked like any other."""

    @tool(effects=PURE, pre=["x >= 0"], examples=[{"arguments": {"x": 9}, "result": 3.0}])
    def root(x: float) -> float:
        """Two to the power of a quarter, squared."""
        return float(x**0.5)

    manager = make_manager(policy=InsertPolicy(allow_primitives=True))
    outcome = manager.insert(root)
    assert isinstance(outcome, Added)
    assert (outcome.depth, outcome.flat_size, outcome.saved_calls) == (0, 1, 0)
    assert manager.library["root"](x=16) == 4.0


def test_async_children_are_awaited_in_validation(make_manager):
    """A composite over async tools is tried out and runs, from sync and from async code."""

    @tool(effects=PURE, examples=[{"arguments": {"x": 2}, "result": 4}])
    async def later_double(x: int) -> int:
        """Twice a number, a little later."""
        await asyncio.sleep(0)
        return 2 * x

    source = '''
@composite(examples=[{"arguments": {"x": 1}, "result": 4}])
def quadruple(x: int) -> int:
    """Four times a number."""
    return later_double(later_double(x))
'''
    manager = make_manager(later_double)
    outcome = manager.insert(source)
    assert isinstance(outcome, Added)
    assert asyncio.run(manager.library["quadruple"](x=3)) == 12


async def test_insert_waits_where_an_event_loop_runs(manager):
    """The async form does the same; the sync form says so instead of blocking the loop."""
    with pytest.raises(UsageError, match="insert_async"):
        manager.insert(ORDER_TOTAL)
    outcome = await manager.insert_async(ORDER_TOTAL)
    assert isinstance(outcome, Added)
    assert isinstance(await manager.preview_async(TWO_ORDERS), Added)
    assert await manager.review("def f(): return 1") is not None
    assert await manager.review(TWO_ORDERS) is None


def test_register_leaves_known_names_alone_and_takes_no_composites(manager, store):
    """Registering again changes nothing; a composite has to go through insert."""
    version = manager.register(manager.library[name] for name in ("add", "mul"))
    assert version == manager.library.version == 1
    manager.insert(ORDER_TOTAL)
    with pytest.raises(UsageError, match="insert"):
        manager.register([manager.library["order_total"]])


def test_code_that_differs_from_the_library_is_not_bound(manager, store):
    """A tool in code whose parameters are not the stored ones is refused when the manager starts."""

    @tool(name="add")
    def other(x: int) -> int:
        """One more."""
        return x + 1

    with pytest.raises(UsageError, match="'add' in code differ"):
        ToolManager(store, tools=[other])
