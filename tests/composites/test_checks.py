"""Static rules on programs: scope, flow, tests, dead calls, sizes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agentkit.composites.parser import parse
from agentkit.errors import SourceProblem

Problems = Callable[[str], tuple[SourceProblem, ...]]
Found = list[tuple[int, str]]


def found(problems: tuple[SourceProblem, ...]) -> Found:
    """Lines and codes."""
    return [(problem.line, problem.code) for problem in problems]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # definite assignment
        ("if x:\n  y = 1\nreturn y", [(4, "possibly_unbound")]),
        ("if x:\n  y = 1\nelse:\n  y = 2\nreturn y", []),
        ("if x:\n  y = 1\nelse:\n  return 2\nreturn y", []),
        ("for y in x:\n  pass\nreturn y", [(4, "possibly_unbound")]),
        ("for y in x:\n  z = y\nreturn z", [(4, "possibly_unbound")]),
        ("z = 0\nfor y in x:\n  z = y\nreturn z", []),
        ("for y in x:\n  if y:\n    z = 1\n  else:\n    continue\n  z += 1\nreturn x", []),
        ("for y in x:\n  if y:\n    z = 1\n  z += 1\nreturn x", [(5, "possibly_unbound")]),
        ("y += 1\ny = x\nreturn y", [(2, "possibly_unbound")]),
        ("y += 1\nreturn x", [(2, "possibly_unbound")]),
        ("return y", [(2, "unknown_name")]),
        ("y = [k for k in x]\nreturn k", [(3, "unknown_name")]),
        # returns and what cannot be reached
        ("y = x", [(2, "missing_return")]),
        ("if x:\n  return 1\nelse:\n  return 2", []),
        ("for y in x:\n  return y", [(2, "missing_return")]),
        ("return 1\ny = 2\nz = 3", [(3, "unreachable_code")]),
        ("if x:\n  return 1\nelse:\n  return 2\nreturn 3", [(6, "unreachable_code")]),
        ("for y in x:\n  if y:\n    break\n  else:\n    continue\n  z = 1\nreturn 1", [(7, "unreachable_code")]),
        # constant conditions
        ("if True:\n  return 1\nreturn 2", [(2, "constant_condition")]),
        ("if 1 > 2 or '':\n  return 1\nreturn 2", [(2, "constant_condition")]),
        ("if {}:\n  return 1\nreturn 2", [(2, "constant_condition")]),
        ("if (1 if 2 else x):\n  return 1\nreturn 2", [(2, "constant_condition")]),
        ("return x or 1", []),
        # names
        ("send = send(x)\nreturn send", [(2, "name_shadowing")]),
        ("for _ in x:\n  pass\nreturn 1", [(2, "underscore_name")]),
        ("f = 1\nreturn f", [(2, "name_shadowing")]),
        # dead calls of tools that change nothing
        ("measure(x)\nreturn 1", [(2, "dead_call")]),
        ("y = measure(x)\nreturn 1", [(2, "dead_call")]),
        ("y = measure(x)\nz = y + 1\nreturn 1", [(2, "dead_call")]),
        ("y = measure(x)\nif x:\n  y = 2\nreturn y", []),
        ("y = measure(x)\nif x:\n  return y\nreturn 1", []),
        ("y = 0\nfor i in x:\n  y += measure(i)\nreturn y", []),
        ("y = 0\nfor i in x:\n  y += measure(i)\nreturn 1", [(4, "dead_call")]),
        ("a = 0\nb = 0\nfor i in x:\n  a = b\n  b = measure(i)\nreturn a", []),
        ("a = 0\nb = 0\nfor i in x:\n  a = b\n  b = measure(i)\nreturn 1", [(6, "dead_call")]),
        ("y = measure(x)\nsend(text=y)\nreturn 1", []),
        ("y = send(text=measure(x))\nreturn 1", []),
        ("add(x, 1)\nreturn 1", []),
        ("measure(send(text=x))\nreturn 1", [(2, "dead_call")]),
        ("k = 0\nfor i, v in enumerate(c + k for c in x):\n  k = measure(v)\nreturn 1", []),
        # iterators where they are consumed
        ("return [list(range(3)), sum(x.values()), max(enumerate(x)), dict_of(x)]", [(2, "unknown_tool")]),
        ("return [len(range(3)), len(x.keys()), ','.join(k for k in x), any(k for k in x)]", []),
        ("y = x.items()\nreturn 1", [(2, "iterator_escapes")]),
        ("for k in (j for j in x):\n  pass\nreturn 1", []),
        ("return max(range(3), range(4))", [(2, "iterator_escapes"), (2, "iterator_escapes")]),
    ],
)  # fmt: skip
def test_rules_of_a_body(body: str, expected: Found, problems_of: Problems) -> None:
    """Each rule finds what breaks it, on its line, and nothing else."""
    indented = body.replace("\n", "\n  ")
    assert found(problems_of(f"def f(x):\n  {indented}\n")) == expected


def test_loops_in_loops_take_no_more_passes_than_names() -> None:
    """Liveness in nested loops is worked out once for the whole program, not loop by loop."""
    depth = 20
    lines = [f"{' ' * level}for i{level} in x:" for level in range(1, depth)]
    lines += [f"{' ' * depth}a{number} = a{number + 1}" for number in range(10)]
    start = "".join(f" a{number} = 0\n" for number in range(11))
    text = f"def f(x):\n{start}" + "\n".join(lines) + "\n return a0"
    assert parse(text, {}).program.parameters[0].name == "x"
