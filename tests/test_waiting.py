"""Waiting for a coroutine where no event loop runs."""

from __future__ import annotations

import pytest

from agentkit._waiting import wait_for


class Large:
    """A result of which a text is costly."""

    def __repr__(self) -> str:
        raise AssertionError("a text of the result was made")


def test_nobody_makes_a_text_of_the_result():
    """The result comes back untouched, however large it is."""

    async def work() -> Large:
        return Large()

    assert isinstance(wait_for(work()), Large)


def test_an_error_comes_through():
    """What the coroutine raises, the caller sees."""

    async def work() -> None:
        raise LookupError("not there")

    with pytest.raises(LookupError, match="not there"):
        wait_for(work())
