"""Calls that would keep a simulated tool busy for hours."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from agentkit_bench.bfcl_simulators import MAX_SIZE, refusal, size_of


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("power", {"base": 10, "exponent": 10**9}, "10 to the power 1000000000"),
        ("power", {"base": -3, "exponent": 10**400}, "a number of 1329 bits"),
        ("logarithm", {"value": 2, "base": 10, "precision": 10**8}, "precision is 100000000"),
        ("square_root", {"number": 2, "precision": 10**5}, "give at most 10000"),
        (
            "round_number",
            {"number": 5, "decimal_places": -(10**9)},
            "decimal_places is -1000000000",
        ),
    ],
)
def test_hopeless_arguments_are_refused_in_words(tool, arguments, words):
    """The refusal says which argument it is about and what is allowed."""
    assert words in refusal(tool, arguments, SimpleNamespace())


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("power", {"base": 2, "exponent": 64}),
        ("power", {"base": 1, "exponent": 10**9}),
        ("power", {"base": 0, "exponent": 10**9}),
        ("power", {"base": 10, "exponent": -(10**9)}),
        ("power", {"base": 1.5, "exponent": 10**9}),
        ("power", {"base": "2", "exponent": None}),
        ("power", {}),
        ("logarithm", {"value": 2, "base": 10, "precision": 50}),
        ("cd", {"folder": "x" * 100_000}),
    ],
)
def test_everything_else_is_left_to_the_tool(tool, arguments):
    """What ends at once, and what is no number, is the tool's own business."""
    assert refusal(tool, arguments, SimpleNamespace()) is None


def test_a_full_file_system_takes_no_copies():
    """Copies of copies would make billions of files out of a few."""
    files = {}
    for _ in range(MAX_SIZE):
        files = {"one": files, "other": files}
        if refusal("cp", {}, SimpleNamespace(root=files)) is not None:
            break
    assert "full" in refusal("cp", {}, SimpleNamespace(root=files))
    assert refusal("find", {}, SimpleNamespace(root=files)) is None
    assert size_of(SimpleNamespace(root=files)) < 3 * MAX_SIZE
