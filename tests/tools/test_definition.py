"""Definitions and their canonical JSON."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given, strategies as st

from agentkit.errors import DefinitionError
from agentkit.tools import (
    ChildReference,
    Description,
    Effects,
    Example,
    Origin,
    Signature,
    Specification,
    ToolDefinition,
    canonical_json,
)

# --- definitions ----------------------------------------------------------------------------------

FULL = ToolDefinition(
    name="solve",
    signature=Signature(
        parameters={"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]},
        result={"type": "number"},
        effects=Effects(reads=True, writes=False, idempotent=True),
        children=(ChildReference(name="add", digest="0" * 64),),
    ),
    description=Description(
        summary="Solve.", tags=("math",), parameters={"a": "First."}, usage_rules=("Be brief.",)
    ),
    specification=Specification(
        pre=("a != 0",), post=("result > 0",), text=("Fast.",), complexity="O(1)"
    ),
    examples=(Example(arguments={"a": 1}, result=[], query="one"), Example(arguments={})),
    origin=Origin(reference="here", original={"type": "dict"}, licence="MIT"),
)


@pytest.mark.parametrize("definition", [FULL, ToolDefinition(name="é\U0001f600")])
def test_definition_survives_json_text(definition) -> None:
    """Writing a definition as JSON and reading it back gives an equal one of the same digest."""
    copy = ToolDefinition.from_json(json.loads(json.dumps(definition.to_json())))
    assert copy == definition
    assert copy.digest == definition.digest
    assert hash(copy) == hash(definition)


def test_digest_covers_the_levels_but_not_the_origin() -> None:
    """Any change to a level changes the digest; where it came from does not."""
    moved = dataclasses.replace(FULL, origin=Origin(reference="elsewhere"))
    assert (moved.digest, moved) == (FULL.digest, FULL)
    for change in (
        {"name": "other"},
        {"signature": Signature()},
        {"description": Description()},
        {"specification": Specification()},
        {"examples": ()},
    ):
        assert dataclasses.replace(FULL, **change).digest != FULL.digest


def test_digest_is_stable_over_versions() -> None:
    """The digest of a known definition is a known number, so stores of old versions stay valid."""
    definition = ToolDefinition.from_schema(
        "double", "Twice.", {"type": "object", "properties": {"x": {"type": "number"}}}
    )
    canonical = (
        b'{"description":{"summary":"Twice."},"format":1,"name":"double","signature":'
        b'{"parameters":{"properties":{"x":{"type":"number"}},"type":"object"}}}'
    )
    assert definition.digest == hashlib.sha256(canonical).hexdigest()


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"name": " "}, "needs a name"),
        ({"name": "f", "format": 4}, "format 4"),
        ({"name": "f", "description": {"words": 1}}, "not a tool definition"),
    ],
)
def test_what_is_no_definition_is_refused(record, message) -> None:
    """A record of another shape, or of a newer format, is refused with the reason."""
    with pytest.raises(DefinitionError, match=message):
        ToolDefinition.from_json(record)


@pytest.mark.parametrize(
    ("names", "effects"),
    [
        ((), Effects()),
        (("reads",), Effects(reads=True, writes=False)),
        (("destructive",), Effects(destructive=True, writes=True)),
    ],
)
def test_effects_from_names(names, effects) -> None:
    """Reading alone declares that nothing is written; destroying declares that something is."""
    assert Effects.of(names) == effects
    assert Effects.of(("reads",)).is_read_only
    assert not Effects(destructive=True, writes=False).is_read_only


@pytest.mark.parametrize(
    ("description", "parameters", "told"),
    [
        (None, {}, "its description is None"),
        ("Adds.", [], "its parameters is []"),
        ("Adds.", {"properties": ["a"]}, "`properties` is ['a']"),
    ],
)
def test_what_is_no_schema_is_refused(description, parameters, told):
    """A definition that nothing could read is refused where it is made, with what is wrong."""
    with pytest.raises(DefinitionError, match=re.escape(told)) as refused:
        ToolDefinition.from_schema("add", description, parameters)
    assert refused.value.tool_name == "add"


@pytest.mark.parametrize(
    ("name", "parameters", "told"),
    [
        (1, {}, "its name is 1"),
        ("f\ud800", {}, "surrogates not allowed"),
        ("f", {"properties": {"x": {"maximum": float("nan")}}}, "Out of range float"),
        ("f", {"properties": {"x": {"maximum": 10**5_000}}}, "Exceeds the limit"),
        ("f", {"properties": {1: {}}}, "a key that is not text: [1]"),
    ],
)
@pytest.mark.parametrize("as_result", [False, True])
def test_what_json_can_not_write_is_refused_where_it_comes_in(name, parameters, told, as_result):
    """A definition without a digest is none: it is refused at the door, not where it is kept."""
    result = parameters if as_result else None
    with pytest.raises(DefinitionError, match=re.escape(told)):
        ToolDefinition.from_schema(name, "", {} if as_result else parameters, result=result)


# --- canonical JSON -------------------------------------------------------------------------------

EXACT = st.integers(-(2**53) + 1, 2**53 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.text(
    st.sampled_from('\x00\x08\x1f"\\/\x7f\x80\u2028\u2029\ud7ff\ue000\uffff\U00010000\U0010ffff')
)
SCALARS = st.none() | st.booleans() | EXACT | TEXTS
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def nested(scalars: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """JSON data over the given scalars; tuples among the arrays."""
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(TEXTS, inner),
        max_leaves=12,
    )


@given(nested(SCALARS) | nested(SCALARS | FLOATS))
@example({"\ue000": 1, "\U00010000": 2})
@example({"\U0001f600": {"\ufb33": "\u2028\x7f\x00"}})
@example([1.0, -0.0, 1e21, 1e-7, 0.1])
def test_canonical_json_is_that_of_the_reference(data: Any) -> None:
    """With and without floats, data are written as the reference implementation writes them."""
    assert canonical_json(data) == rfc8785.dumps(data)


@pytest.mark.parametrize(
    "data",
    [
        "\ud800",
        {"\ud800": 1},
        {1: "a"},
        [float("nan")],
        {"a": {1, 2}},
    ],
    ids=lambda data: type(data).__name__ if type(data) is object else ascii(data),
)
def test_what_json_can_not_hold(data: Any) -> None:
    """Lone surrogates, keys that are no text, and values that are no JSON are refused."""
    with pytest.raises(ValueError, match=r"not JSON data|surrogates"):
        canonical_json(data)
