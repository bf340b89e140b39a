"""Options and arguments as the signature and the docstring of a command declare them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
from click.testing import CliRunner

from agentkit.cli.options import FromZero, StoreUrl, argument, command, option


@dataclass(frozen=True, kw_only=True)
class Colours:
    """Which colours.

    Attributes:
        paint: What to paint with.
        shade (NAME): A shade, told over more lines
            than one
    """

    paint: Literal["red", "blue"] = "red"
    shade: tuple[str, ...] = ()


@command(more="Behind the examples.")
def draw(  # noqa: D417 - what is shared is told elsewhere
    what: str,
    more: Annotated[tuple[str, ...], argument("[MORE]...")] = (),
    *,
    colours: Colours,
    times: int = 1,
    limit: FromZero | None = None,
    big: bool = False,
    speed: float | None = None,
    name: Annotated[str, option("-n", "--name")] = "",
    store_url: StoreUrl,
) -> None:
    """Draw WHAT.

    Args:
        times: How often.
        limit (MOST): The most.
        big: Whether it is big.
        speed: How fast.
        name (NAME): A name.

    Examples:
      draw a house
    """
    print(what, more, colours, times, limit, big, speed, name, store_url)


def say(*arguments: str) -> str:
    """What the command prints."""
    result = CliRunner().invoke(draw, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout.strip()


def test_defaults_and_values_reach_the_function():
    """Each parameter gets its default or what was typed, and a dataclass is made of its fields."""
    store = "sqlite:///.agentkit/library.db"
    assert say("a") == f"a () {Colours()} 1 None False None  {store}"
    typed = ("a", "b", "c", "--paint", "blue", "--shade", "x", "--shade", "y", "--times", "2")
    typed += ("--limit", "0", "--big", "--speed", "0.5", "-n", "me", "--store", "s.db")
    colours = Colours(paint="blue", shade=("x", "y"))
    assert say(*typed) == f"a ('b', 'c') {colours} 2 0 True 0.5 me s.db"


@pytest.mark.parametrize(
    "typed",
    [
        (),
        ("a", "--times", "0"),
        ("a", "--limit", "-1"),
        ("a", "--speed", "0"),
        ("a", "--paint", "x"),
    ],
)
def test_what_a_type_does_not_allow_is_refused(typed):
    """Counts begin at 1 where nothing else is said, seconds above 0, choices are closed."""
    assert CliRunner().invoke(draw, list(typed)).exit_code == 2


def test_help_is_the_docstring():
    """Sections of parameters are their help; shared options are told in one place."""
    page = CliRunner().invoke(draw, ["--help"], terminal_width=100).output
    assert "Usage: draw [OPTIONS] WHAT [MORE]..." in page
    assert "Args:" not in page
    for line in (
        "--paint [red|blue]  What to paint with.  [default: red]",
        "A shade, told over more lines than one; may be given several times.",
        "--limit MOST        The most.  [x>=0]",
        "--times N           How often.  [default: 1; x>=1]",
        "-n, --name NAME     A name.",
        "The store of definitions and episodes",
    ):
        assert line in page
    assert page.rstrip().endswith("Behind the examples.")
