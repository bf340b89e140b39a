"""What a composite does to the world is what its children do together."""

from __future__ import annotations

import pytest

from agentkit.composites.source import join_effects
from agentkit.tools.definition import Effects


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
