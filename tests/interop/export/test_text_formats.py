"""Stubs, pages and bare schemas: text that other programs can read, whatever the words hold."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.interop.export.formats import render_json_schema
from agentkit.interop.export.texts import render_markdown, render_python_stubs
from agentkit.library import Store
from agentkit.testing import sample_library
from agentkit.tools.definition import Effects

SEVERAL = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

HOSTILE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "class": {"type": "string", "description": 'Ends with """ and \\ and \x1b[31m.'},
        "a b": {
            "type": "array",
            "items": {"type": "object", "properties": {"n'": {"type": "null"}}},
        },
        "a_b": {"enum": ["x", None, 3, "quote'"]},
        "self": {"$ref": "#"},
        "price": {"anyOf": [{"type": "number", "minimum": 0}, {"type": "null"}]},
        "rest": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
    "required": ["class"],
}
CALLS = """
from tools import bill_split, calendar_find_slot, weather_now

share: float = bill_split(amount=10.0, people=2)
slot: str | None = calendar_find_slot(day="2026-03-02", hours=1)
city = weather_now(city="Oslo", unit="celsius")
"""


def test_words_of_keywords_follow_those_of_the_tool() -> None:
    """A description without a full stop gets one, and examples are told as such."""
    city = {"type": "string", "description": "The city", "examples": ["Oslo"], "minLength": 2}
    tool = ToolDefinition.from_schema("f", "Do it.", {"properties": {"city": city}})
    words = 'The city. Must be at least 2 characters long. For example "Oslo".'

    assert words in render_python_stubs([tool]).value
    assert words in render_markdown([tool]).value


def test_stubs_check_calls_under_mypy(tmp_path: Path) -> None:
    """Right calls pass a strict type checker, and each wrong one is found."""
    (tmp_path / "tools.pyi").write_text(render_python_stubs(sample_library()).value)
    (tmp_path / "good.py").write_text(CALLS)
    (tmp_path / "bad.py").write_text(
        "from tools import bill_split, weather_now\n"
        "bill_split(amount='ten', people=2)\n"
        "bill_split(amount=10.0)\n"
        "weather_now(city='Oslo', unit='kelvin')\n"
        "weather_now('Oslo')\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir"]
    pytest.importorskip("mypy")

    done = subprocess.run(
        [*command, str(tmp_path / "cache"), "good.py", "bad.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    found = {tuple(line.split(":")[:2]) for line in done.stdout.splitlines()}
    assert found == {("bad.py", line) for line in "2345"}


def test_hostile_words_stay_words_in_stubs() -> None:
    """Quotes, backslashes and control characters in texts do not end a docstring."""
    tool = ToolDefinition.from_schema('x"; import os', 'Say """\nand "', HOSTILE)
    rendering = render_python_stubs([tool, ToolDefinition(name="x___import_os")])
    tree = ast.parse(rendering.value)

    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert [node.name for node in functions] == ["x___import_os_", "x___import_os"]
    assert [argument.arg for argument in functions[0].args.kwonlyargs] == [
        *("class_", "a_b_", "a_b", "self", "price", "rest")
    ]
    assert rendering.names["x___import_os_"] == 'x"; import os'
    assert "\x1b" not in rendering.value
    lost = {(loss.keyword, loss.went) for loss in rendering.losses}
    assert {("name", "changed"), ("$ref", "dropped"), ("minimum", "text")} <= lost


@SEVERAL
@given(data=st.data())
def test_any_library_makes_stubs_that_parse(
    definitions: st.SearchStrategy[ToolDefinition], data: st.DataObject
) -> None:
    """Every stub file is Python: one function a tool, with one parameter a property."""
    library = Library(
        {one.name: one for one in data.draw(st.lists(definitions, max_size=3))}.values()
    )
    tree = ast.parse(render_python_stubs(library).value)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]

    assert [len(node.args.kwonlyargs) for node in functions] == [
        len(one.signature.properties) for one in library.definitions
    ]
    assert len({node.name for node in functions}) == len(library)


@SEVERAL
@given(data=st.data())
def test_any_library_makes_schemas_that_are_valid(
    definitions: st.SearchStrategy[ToolDefinition], data: st.DataObject
) -> None:
    """Each schema is valid JSON Schema 2020-12, and holds what the tool's own does."""
    definition = data.draw(definitions)
    schema = render_json_schema([definition]).value[definition.name]

    jsonschema.Draft202012Validator.check_schema(schema)
    assert (
        schema.items()
        >= {
            key: value for key, value in definition.parameters_schema.items() if key != "title"
        }.items()
    )
    json.dumps(schema)


def test_pages_tell_every_level(store: Store) -> None:
    """A page has the words, the parameters, the program's tools, effects and examples."""
    page = render_markdown(store.load()).value

    assert page.splitlines()[0].endswith("tools of library version 4")
    for text in ("## order_total", "Made of: `add`, `mul`", "Effects: ", "A first number"):
        assert text in page
    assert '`{"price": 4, "count": 3, "fee": 2}` gives `14`' in page


def test_markup_in_words_is_no_markup() -> None:
    """Foreign words can neither open a heading nor a link, nor break a table."""
    parameters = {
        "type": "object",
        "properties": {"a|b": {"type": "string", "enum": ["`x`|", ""], "description": "# | <b>"}},
    }
    tool = ToolDefinition.from_schema(
        "n", "# Title\n\n[a](http://x) <script>", parameters, effects=Effects(destructive=True)
    )
    lines = render_markdown([tool]).value.splitlines()

    assert "\\# Title \\[a\\](http://x) \\<script\\>" in lines
    (row,) = (line for line in lines if line.startswith("| `a"))
    assert row.replace("\\|", "").count("|") == 5
    assert "- Effects: destructive" in lines
