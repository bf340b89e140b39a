"""What a composite does to the world is what its children do together."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from agentkit.composites.source import join_effects
from agentkit.tools.definition import Effects

DECLARED = st.sampled_from([True, False, None])
EFFECTS = st.builds(
    Effects,
    reads=DECLARED,
    writes=DECLARED,
    destructive=DECLARED,
    idempotent=DECLARED,
    open_world=DECLARED,
)


@pytest.mark.parametrize(
    ("writes", "joined"),
    [
        ([True, False], True),
        ([True, None], True),
        ([False, False], False),
        ([False, None], None),
        ([None], None),
        ([], False),
    ],
)
def test_an_effect_of_one_child_is_an_effect_of_the_composite(
    *, writes: list[bool | None], joined: bool | None
) -> None:
    """True wins, False needs all, anything else stays undeclared."""
    assert join_effects(Effects(writes=value) for value in writes).writes is joined


@pytest.mark.parametrize(
    ("idempotent", "joined"),
    [
        ([True, False], False),
        ([None, False], False),
        ([True, True], True),
        ([True, None], None),
        ([], True),
    ],
)
def test_only_idempotent_children_make_an_idempotent_composite(
    *, idempotent: list[bool | None], joined: bool | None
) -> None:
    """False wins, True needs all: the reverse of the other effects."""
    assert join_effects(Effects(idempotent=value) for value in idempotent).idempotent is joined


@given(st.lists(EFFECTS, max_size=4))
def test_a_composite_is_read_only_only_when_each_child_is(effects: list[Effects]) -> None:
    """No child that may write hides in a composite that is called read-only."""
    assert not join_effects(effects).is_read_only or all(e.writes is False for e in effects)
