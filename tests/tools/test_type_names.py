"""Names of types in several languages are read as JSON Schema."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from agentkit.tools.fit import JSON_TYPES
from agentkit.tools.sources.keywords import read_type_name


@pytest.mark.parametrize("name", JSON_TYPES)
def test_json_types_name_themselves(name) -> None:
    """A type of JSON Schema stands for itself, in any case."""
    assert read_type_name(name) == read_type_name(name.upper()) == {"type": name}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dict", {"type": "object"}),
        (
            "HashMap<String, Integer>",
            {"type": "object", "additionalProperties": {"type": "integer"}},
        ),
        ("Map<String, Object>", {"type": "object", "additionalProperties": {"type": "object"}}),
        ("Dict[str, Any]", {"type": "object"}),
        ("typing.List[float]", {"type": "array", "items": {"type": "number"}}),
        ("string[]", {"type": "array", "items": {"type": "string"}}),
        (
            "Array<Array<number>>",
            {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
        ),
        ("tuple[float, float]", {"type": "array", "items": {"type": "number"}}),
        ("tuple[float, str]", {"type": "array", "items": {}}),
        ("Optional[int]", {"type": ["integer", "null"]}),
        ("Union[int, str, int]", {"type": ["integer", "string"]}),
        ("int|any", {}),
        ("Object", {"type": "object"}),
        ("unknown", {}),
        ("java.lang.String", {"type": "string"}),
    ],
)
def test_spellings(text, expected) -> None:
    """Python, Java and TypeScript spellings are known."""
    assert read_type_name(text) == expected


@pytest.mark.parametrize(
    "text", ["", "Date (yyyy)", "List[", "int[str]", "Foo", "list[Foo]", "int | Foo", "[" * 300]
)
def test_unknown_names_are_not_guessed(text) -> None:
    """A name that nobody could read is None, not a guess."""
    assert read_type_name(text) is None


@given(st.text(alphabet="intlsra[]<>|, ", max_size=40))
def test_any_text_is_answered(text) -> None:
    """No text breaks the reader."""
    found = read_type_name(text)
    assert found is None or isinstance(found, dict)
