"""A store with a history that has all there is to tell: primitives, a composite, a promotion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import strategies as st

from agentkit import ToolDefinition, open_store
from agentkit.evolution import ToolManager
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.gates import GateReport
from agentkit.evolution.proposal import Proposal
from agentkit.evolution.validation import ValidationPolicy, validate
from agentkit.library import Author, LibraryChange, Store
from agentkit.testing import primitive_library, sample_library
from agentkit.tools.definition import Effects, Example, Origin

PERSON = Author(kind="person", name="ada")
MODEL = Author(kind="model", name="small-model")

ORDER_TOTAL = '''
@composite(examples=[{"arguments": {"price": 4, "count": 3, "fee": 2}, "result": 14}])
def order_total(price: float, count: int, fee: float) -> float:
    """What an order costs with its fee."""
    return add(mul(price, count), fee)
'''


def reworded(definition: ToolDefinition, added: str) -> ToolDefinition:
    """The definition with one more sentence in its summary."""
    said = definition.description
    return replace(definition, description=replace(said, summary=f"{said.summary} {added}"))


def promote(manager: ToolManager, name: str, sentence: str) -> str:
    """Bring one reworded definition through the gates; the id of the proposal."""
    base = manager.library[name].definition
    proposal = Proposal.of(
        base, reworded(base, sentence), stream="feedback", author=MODEL, reason="was misread"
    )
    manager.submit(proposal)
    report = GateReport(gate="offline", decision="pass", reason="12 of 14 pairs were won")
    manager.assess(proposal.proposal_id, [report])
    manager.advance(proposal.proposal_id)
    return proposal.proposal_id


def fill(store: Store) -> ToolManager:
    """A library that grew: registered, composed, reworded, and with one tool taken away."""
    code = primitive_library()
    by_numbers = partial(validate, policy=ValidationPolicy(model_texts=()))
    manager = ToolManager(
        store, tools=code, author=PERSON, lifecycle=LifecyclePolicy(), validate=by_numbers
    )
    manager.register([*code, *sample_library()], reason="the warm library")
    manager.insert(ORDER_TOTAL, reason="asked for often")
    promote(manager, "add", "A first number and a second one.")
    manager.edit(
        lambda _: LibraryChange(
            proposal_id="remove-1",
            removals=("calendar_cancel_event",),
            author="ada",
            reason="not used any more",
        )
    )
    return manager


@pytest.fixture(scope="session")
def store() -> Iterator[Store]:
    """The library that ``fill`` makes, in memory; tests read it and leave it as it is."""
    opened = open_store("memory:")
    fill(opened)
    yield opened
    opened.close()


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.text("abcdefgh_", min_size=1, max_size=8)
OPTIONAL = st.none() | st.booleans()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
SIMPLE = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={
            "enum": st.lists(TEXTS, min_size=1, max_size=3, unique=True),
            "pattern": st.sampled_from(["^a", "[0-9]+$"]),
            "maxLength": st.integers(4, 9),
            "default": TEXTS,
            "description": TEXTS,
        },
    ),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number"])},
        optional={"minimum": st.integers(-9, 0), "multipleOf": st.integers(1, 5)},
    ),
    st.sampled_from([{}, {"type": "boolean"}, {"type": ["string", "null"]}]),
)


def _objects(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Schemas of objects."""
    parts = {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, max_size=3)}
    return st.fixed_dictionaries(parts, optional={"additionalProperties": st.booleans()})


SCHEMAS = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        _objects(inner),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)}),
    ),
    max_leaves=4,
)
PARAMETERS = _objects(SCHEMAS)
EFFECTS = st.builds(Effects, reads=OPTIONAL, writes=OPTIONAL, destructive=OPTIONAL)
ORIGINS = st.builds(Origin, reference=TEXTS, licence=st.sampled_from([None, "MIT", "0BSD"]))
EXAMPLES = st.lists(
    st.builds(Example, arguments=st.dictionaries(NAMES, VALUES, max_size=2), result=VALUES),
    max_size=2,
)
RESULTS = st.none() | SCHEMAS.filter(bool)


@st.composite
def _definitions(draw: st.DrawFn) -> ToolDefinition:
    base = ToolDefinition.from_schema(
        draw(NAMES),
        draw(TEXTS),
        draw(PARAMETERS),
        result=draw(RESULTS),
        effects=draw(EFFECTS),
        tags=draw(st.lists(TEXTS, max_size=2)),
        origin=draw(ORIGINS),
    )
    return replace(base, examples=tuple(draw(EXAMPLES)))


@pytest.fixture(scope="session")
def definitions() -> st.SearchStrategy[ToolDefinition]:
    """Definitions of any shape, with words, examples and origins."""
    return _definitions()
