"""``agentkit tools add --composite``: a Python file becomes a composite, or the reason why not."""

from __future__ import annotations

import json

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


def test_the_same_file_again_changes_nothing(invoke, primitives):
    """Composing a file twice is a success that leaves the library alone."""
    arguments = ("tools", "add", "--composite", primitives(GOOD), "--tools", "calculator.py")
    invoke(*arguments)
    result = invoke(*arguments)
    assert result.exit_code == 0
    assert result.stdout == (
        "order_total does this already, it is the same tool, to the last example; the library "
        "stays at version 2\n"
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


def test_a_failed_trial_is_told_with_advice(invoke, primitives):
    """A worked call that does not hold is told with both values."""
    result = invoke(
        "tools",
        "add",
        "--composite",
        primitives(GOOD.replace("14", "15")),
        "--tools",
        "calculator.py",
    )
    assert result.exit_code == 1
    assert "[example_failed]" in result.stderr
    assert "says 15, but the program gives 14" in result.stderr
    assert "correct the program" in result.stderr


def test_without_code_it_says_how_to_give_it(invoke, primitives):
    """Tools without code answer from their worked calls; what they lack is told."""
    result = invoke("tools", "add", "--composite", primitives(GOOD))
    assert result.exit_code == 1
    assert "[unbound_child]" in result.stderr
    assert "--tools" in result.stderr


def test_tools_that_are_not_in_the_library_are_named(invoke, tmp_path, primitives):
    """Code alone makes no child; the message says what adds it."""
    (tmp_path / "more.py").write_text(
        "from agentkit import tool\n\n@tool\ndef sub(a: float, b: float) -> float:\n"
        '    """Subtract."""\n    return a - b\n'
    )
    text = primitives(GOOD.replace("mul(", "sub("))
    result = invoke(
        "tools", "add", "--composite", text, "--tools", "calculator.py", "--tools", "more.py"
    )
    assert result.exit_code == 1
    assert "sub of --tools: not in the library yet" in result.stderr
    assert "agentkit tools add" in result.stderr


def test_undeclared_effects_need_a_word(invoke, primitives):
    """A tool that declares no effects is run only with --run-undeclared."""
    text = '''
@composite(examples=[{"arguments": {"text": "a"}, "result": "AA"}])
def twice(text: str) -> str:
    """Shout twice."""
    return shout(text) + shout(text)
'''
    arguments = ("tools", "add", "--composite", primitives(text), "--tools", "calculator.py")
    refused = invoke(*arguments)
    assert refused.exit_code == 1
    assert "[no_stub]" in refused.stderr
    assert invoke(*arguments, "--run-undeclared").exit_code == 0


def test_a_revision_is_asked_for(invoke, primitives):
    """A taken name is refused, and replaced with --revise."""
    invoke("tools", "add", "--composite", primitives(GOOD), "--tools", "calculator.py")
    other = primitives(
        GOOD.replace("mul(price, count)", "mul(mul(price, count), 2)").replace("14", "26")
    )
    refused = invoke("tools", "add", "--composite", other, "--tools", "calculator.py")
    assert "[name_taken]" in refused.stderr
    result = invoke("tools", "add", "--composite", other, "--tools", "calculator.py", "--revise")
    assert result.stdout.startswith(
        "order_total revised: library version 3, depth 1, saves 2 calls"
    )


def test_json_holds_the_outcome(invoke, primitives):
    """With --json stdout is one object, also for a rejection, and the exit status is the same."""
    result = invoke(
        "tools", "add", "--composite", primitives(GOOD), "--tools", "calculator.py", "--json"
    )
    assert json.loads(result.stdout)["outcome"] == "added"
    bad = primitives(GOOD.replace("mul(", "multiply("))
    result = invoke(
        "tools", "add", "--composite", bad, "--tools", "calculator.py", "--json", "--dry-run"
    )
    assert result.exit_code == 1
    record = json.loads(result.stdout)
    assert (record["code"], record["dry_run"]) == ("unknown_child", True)
    assert record["problems"][0]["column"] == 16


@pytest.mark.parametrize(
    "text", ["", "import os\nos.abort()", "x = 1", "def f(:", "\x00", "def f():\n" + " " * 9000]
)
def test_what_is_no_function_is_refused(invoke, primitives, text):
    """Anything else in the file is a rejection with status 1, never a trace, and never runs."""
    result = invoke("tools", "add", "--composite", primitives(text), "--tools", "calculator.py")
    assert result.exit_code == 1
    assert result.stderr.startswith("rejected [")


def test_a_file_that_is_no_text_is_misuse(invoke, primitives, tmp_path):
    """Bytes that are no UTF-8 are told as such, not as an unexpected error."""
    primitives(GOOD)
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe")
    result = invoke("tools", "add", "--composite", "bytes.py")
    assert result.exit_code == 2
    assert "bytes.py: not a text in UTF-8" in result.stderr


def test_a_new_text_for_a_tool_that_does_the_same_is_told_how(invoke, primitives):
    """A reworded text of the same name is merged, and the way to keep its words is named."""
    arguments = ("--tools", "calculator.py")
    invoke("tools", "add", "--composite", primitives(GOOD), *arguments)
    result = invoke(
        "tools",
        "add",
        "--composite",
        primitives(GOOD.replace('"""', '"""All in all: ', 1)),
        *arguments,
    )
    assert (result.exit_code, result.stdout[:32]) == (0, "order_total does this already, i")
    assert result.stderr == "--revise puts this text in the place of order_total\n"
