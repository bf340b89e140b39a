"""``agentkit tools add --composite``: a Python file becomes a composite, or the reason why not."""

from __future__ import annotations

import pytest

GOOD = '''\
@composite(examples=[{"arguments": {"price": 4, "count": 3, "fee": 2}, "result": 14}])
def order_total(price: float, count: int, fee: float) -> float:
    """What an order costs with its fee."""
    return add(mul(price, count), fee)
'''


@pytest.fixture
def primitives(tmp_path, invoke):
    """A file of pure tools, in the library; and a way to write the file of a composite."""
    (tmp_path / "calculator.py").write_text(
        '''
from agentkit import tool
from agentkit.tools.definition import Effects

PURE = Effects(reads=False, writes=False)

@tool(effects=PURE, examples=[{"arguments": {"a": 1, "b": 2}, "result": 3}])
def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b

@tool(effects=PURE, examples=[{"arguments": {"a": 2, "b": 3}, "result": 6}])
def mul(a: float, b: float) -> float:
    """Multiply two numbers."""
    return a * b

@tool
def shout(text: str) -> str:
    """Louder."""
    return text.upper()
'''
    )
    assert invoke("tools", "add", "calculator.py").exit_code == 0

    def write(text, name="order.py"):
        (tmp_path / name).write_text(text)
        return name

    return write


def test_a_function_in_a_file_is_added(invoke, as_json, primitives):
    """Name, version, depth, saved calls and children are told; the history says where from."""
    result = invoke("tools", "add", "--composite", primitives(GOOD), "--tools", "calculator.py")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == (
        "order_total added: library version 2, depth 1, saves 1 call, calls add, mul\n"
    )
    (revision,) = as_json("log", "--tool", "order_total")
    assert revision["reason"] == "compose order.py"


def test_a_dry_run_writes_nothing(invoke, as_json, primitives):
    """It says what would happen, with the exit status of what would happen."""
    result = invoke(
        "tools", "add", "--composite", primitives(GOOD), "--tools", "calculator.py", "--dry-run"
    )
    assert (result.exit_code, result.stdout.split(":")[0]) == (0, "order_total would be added")
    assert "order_total" not in [tool["name"] for tool in as_json("tools", "list")]
    bad = primitives(GOOD.replace("14", "15"))
    assert (
        invoke(
            "tools", "add", "--composite", bad, "--tools", "calculator.py", "--dry-run"
        ).exit_code
        == 1
    )


def test_a_function_that_exists_is_merged(invoke, primitives):
    """The same program under another name is merged, and that is a success."""
    invoke("tools", "add", "--composite", primitives(GOOD), "--tools", "calculator.py")
    twin = (
        GOOD.replace("order_total", "bill")
        .replace("price", "each")
        .replace('4, "count', '5, "count')
    )
    result = invoke(
        "tools",
        "add",
        "--composite",
        primitives(twin.replace("14", "17")),
        "--tools",
        "calculator.py",
    )
    assert result.exit_code == 0, result.stderr
    assert result.stdout == (
        "merged into order_total, it is the same program: 1 worked call moved there; library "
        "version 3 (each is price)\n"
    )


def test_problems_of_the_text_are_shown_with_a_caret(invoke, primitives):
    """Each problem has its file, line, column, the line itself, and advice."""
    result = invoke(
        "tools",
        "add",
        "--composite",
        primitives(GOOD.replace("mul(", "multiply(")),
        "--tools",
        "calculator.py",
    )
    assert (result.exit_code, result.stdout) == (1, "")
    lines = result.stderr.splitlines()
    assert lines[0].startswith("rejected [unknown_child]: ")
    assert lines[1].startswith("order.py:4:16: ")
    assert lines[2] == "        return add(multiply(price, count), fee)"
    assert lines[3] == " " * 19 + "^"
