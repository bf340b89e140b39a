"""Broken schemas, remote references, deep values and hostile patterns do no harm."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from agentkit.errors import DefinitionError
from agentkit.tools import Signature, ToolDefinition
from agentkit.tools.validation import ArgumentValidator


def validator_of(**properties) -> ArgumentValidator:
    """A validator of a tool with these properties."""
    return ArgumentValidator(
        ToolDefinition.from_schema("probe", "", {"type": "object", "properties": properties})
    )


@pytest.mark.parametrize(
    ("schema", "fragment"),
    [
        ({"type": "objekt"}, "at properties/x/type"),
        ({"type": "integer", "minimum": "3"}, "minimum"),
        ({"pattern": "("}, "pattern"),
        ({"$ref": "#/$defs/missing"}, "'#/$defs/missing' points nowhere"),
        ({"properties": ["a"]}, "properties"),
    ],
)
def test_broken_schema_is_found_when_prepared(schema, fragment) -> None:
    """A schema that can not be used is refused before any call, naming tool and place."""
    with pytest.raises(DefinitionError) as caught:
        validator_of(x=schema).prepare()
    assert caught.value.tool_name == "probe"
    assert fragment in str(caught.value)
    with pytest.raises(DefinitionError):
        validator_of(x=schema).check({"x": 1})


def test_unusual_but_valid_schema_is_accepted() -> None:
    """A schema that normalising would touch is still fine when it is valid."""
    validator = validator_of(x={"type": "array"}, y={"enum": []}, z={"optional": True})
    validator.prepare()
    assert validator.check({"x": [1]}) == ()
    assert validator.check({"y": 1})


def test_very_deep_schema_is_refused() -> None:
    """A schema nested beyond the stack is refused, not crashed on."""
    deep: dict = {"type": "string"}
    for _ in range(5_000):
        deep = {"type": "array", "items": deep}
    with pytest.raises(DefinitionError, match="nested too deeply"):
        ArgumentValidator(
            ToolDefinition(name="deep", signature=Signature(parameters={"properties": {"x": deep}}))
        ).prepare()


def test_local_reference_works() -> None:
    """A reference into the same schema is followed."""
    schema = {
        "type": "object",
        "properties": {"home": {"$ref": "#/$defs/Address"}},
        "$defs": {"Address": {"type": "object", "properties": {"zip": {"type": "integer"}}}},
    }
    validator = ArgumentValidator(ToolDefinition.from_schema("move", "", schema))
    assert validator.check({"home": {"zip": 1}}) == ()
    (problem,) = validator.check({"home": {"zip": "a"}})
    assert problem.rule == "`home.zip` must be an integer, got the string 'a'"


def test_remote_reference_never_touches_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A remote reference is a problem in words; no connection is opened for it."""

    def refuse(*args, **kwargs):
        pytest.fail("a connection was opened")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    validator = validator_of(x={"$ref": "https://example.org/schema.json"}, y={"type": "integer"})
    validator.prepare()
    assert validator.check({"y": 1}) == ()
    (problem,) = validator.check({"x": 1})
    assert "'https://example.org/schema.json', which is not part of it and is never fetched" in (
        problem.rule
    )


def test_very_deep_arguments_are_a_problem() -> None:
    """Arguments nested beyond the stack are refused in words."""
    node: dict = {}
    for _ in range(20_000):
        node = {"next": node}
    schema = {
        "type": "object",
        "properties": {"node": {"$ref": "#/$defs/Node"}},
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
    }
    (problem,) = ArgumentValidator(ToolDefinition.from_schema("f", "", schema)).check(
        {"node": node}
    )
    assert "nested too deeply" in problem.rule


def test_reference_that_only_leads_to_itself_is_a_problem() -> None:
    """A schema that goes round in a circle gives a problem, not a hang."""
    schema = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"$ref": "#/$defs/A"}},
    }
    (problem,) = ArgumentValidator(ToolDefinition.from_schema("f", "", schema)).check({"x": 1})
    assert "nested too deeply" in problem.rule


def test_huge_values_are_shortened() -> None:
    """Huge texts, numbers and lists are refused in a short sentence."""
    validator = validator_of(
        text={"type": "integer"}, number={"maximum": 10}, items={"items": {"type": "integer"}}
    )
    (problem,) = validator.check({"text": "x" * 1_000_000})
    assert len(problem.rule) < 150
    (problem,) = validator.check({"number": 10**5000})
    assert "can not be checked" in problem.rule
    assert len(validator.check({"items": ["x"] * 1000})) == 20


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "^(a*)*$", "^(a|a)*$", "^((ab?)*c?)+$", r"^(\w+\s?)*$", "^(a|aa)+$"]
)
def test_catastrophic_pattern_ends(pattern) -> None:
    """A pattern that would keep a backtracking engine busy for ever decides at once."""
    validator = validator_of(x={"type": "string", "pattern": pattern})
    (problem,) = validator.check({"x": "a" * 5000 + "!"})
    assert problem.keyword == "pattern"


def test_pattern_that_needs_backtracking_is_refused_when_prepared() -> None:
    """A pattern without a linear-time match is named with its reason before any call."""
    with pytest.raises(DefinitionError, match="uses look-around or back-references"):
        validator_of(x={"type": "string", "pattern": "^(?=a)a$"}).prepare()


def test_jsonschema_loads_only_for_invalid_calls() -> None:
    """Valid calls of a well-formed tool never load the validator."""
    script = """
import sys
from agentkit.tools import ToolDefinition
from agentkit.tools.validation import ArgumentValidator
schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
validator = ArgumentValidator(ToolDefinition.from_schema("f", "", schema))
validator.prepare()
assert validator.check({"n": 1}) == ()
assert "jsonschema" not in sys.modules
assert validator.check({"n": "1"})
assert "jsonschema" in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True, timeout=60)
