"""Types form a distributive lattice; schemas, values and words of planners are read as types."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from agentkit.retrieval import Slot
from agentkit_bench.type_lattice import ANY, NEVER, TypedSlot, TypeSet, declared_type, named_type

_BASES = st.sampled_from(["string", "number", "integer", "boolean", "null", "array", "object"])
_MEANINGS = st.sampled_from(
    ["", "moment", "date", "datetime", "place", "city", "id", "id:hotel", "id:user", "email"]
)
_VALUES = st.one_of(
    st.sampled_from(["km", "mile", "2024-08-15", "12"]),
    st.integers(0, 3),
    st.sampled_from([0.5, 1.0]),
    st.booleans(),
    st.none(),
)


def _plain():
    return st.builds(lambda base, meaning: TypeSet.of(base, meaning=meaning), _BASES, _MEANINGS)


def _listed():
    return st.builds(TypeSet.one_of, st.lists(_VALUES, min_size=1, max_size=3))


def _compound(parts):
    fields = st.dictionaries(st.sampled_from(["a", "b", "c"]), parts, max_size=3)
    return st.one_of(
        st.builds(TypeSet.list_of, parts),
        st.builds(TypeSet.object_with, fields),
        st.builds(lambda left, right: left | right, parts, parts),
    )


_TYPES = st.one_of(
    st.just(ANY),
    st.just(NEVER),
    st.recursive(st.one_of(_plain(), _listed()), _compound, max_leaves=6),
)


# --- the laws -------------------------------------------------------------------------------------

LAWS = {
    "join commutes": lambda a, b: (a | b) == (b | a),
    "meet commutes": lambda a, b: (a & b) == (b & a),
    "join absorbs meet": lambda a, b: (a | (a & b)) == a,
    "meet absorbs join": lambda a, b: (a & (a | b)) == a,
    "meet distributes": lambda a, b, c: (a & (b | c)) == ((a & b) | (a & c)),
    "any is the top": lambda a: (a | ANY) == ANY and (a & ANY) == a and a <= ANY,
    "never is the bottom": lambda a: (a | NEVER) == a and (a & NEVER) == NEVER <= a,
    "order is antisymmetric": lambda a, b: not (a <= b <= a) or a == b,
    "order is transitive": lambda a, b, c: not (a <= b <= c) or a <= c,
    "order is that of join": lambda a, b: (a <= b) == ((a | b) == b),
    "equal types have one hash": lambda a, b: hash(a | b) == hash(b | a),
}


@pytest.mark.parametrize("law", LAWS)
@given(data=st.data())
def test_the_lattice_laws_hold(law, data):
    """Whatever types are taken, the law holds."""
    holds = LAWS[law]
    taken = [data.draw(_TYPES) for _ in range(holds.__code__.co_argcount)]
    assert holds(*taken), " / ".join(map(str, taken))


def test_an_integer_is_a_number_and_a_date_is_a_text():
    """The order is the one that people expect."""
    assert TypeSet.of("integer") < TypeSet.of("number") < ANY
    assert TypeSet.of("string", meaning="date") < TypeSet.of("string", meaning="moment")
    assert not TypeSet.of("string", meaning="date") <= TypeSet.of("string", meaning="datetime")
    assert TypeSet.one_of(["km"]) < TypeSet.one_of(["km", "mile"]) < TypeSet.of("string")
    assert TypeSet.list_of(TypeSet.of("integer")) < TypeSet.list_of(TypeSet.of("number"))
    wide = TypeSet.object_with({"a": ANY})
    assert TypeSet.object_with({"a": TypeSet.of("string"), "b": ANY}) < wide < TypeSet.of("object")


def test_enums_are_compared_by_their_sets():
    """The order and the repetition of values do not matter; 1.0 is 1, and true is not."""
    assert TypeSet.one_of(["b", "a", "b"]) == TypeSet.one_of(["a", "b"])
    assert TypeSet.one_of([1.0]) == TypeSet.one_of([1]) != TypeSet.one_of([True])
    met = TypeSet.one_of(["a", "b"]) & TypeSet.one_of(["b", "c"])
    assert met == TypeSet.one_of(["b"])
    assert (TypeSet.one_of([2.5]) & TypeSet.of("integer")).is_never


# --- declared types -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": ["integer", "null"]}, "integer | null"),
        ({"type": "string", "format": "date-time"}, "string datetime"),
        ({"enum": ["a", "b"]}, 'string in {"a", "b"}'),
        ({"type": "number", "enum": [1, 2.5]}, "integer in {1} | number in {2.5}"),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "integer | string"),
        ({"type": "array", "items": {"type": "number"}}, "array of (number)"),
        ({"properties": {"a": {"type": "string"}}, "required": ["a"]}, "object with a"),
    ],
)
def test_a_schema_is_read(schema, words):
    """Types, unions, lists, objects, enums and formats become types."""
    assert str(declared_type(schema)) == words


@pytest.mark.parametrize(
    "schema",
    [{}, True, None, "string", {"type": "any"}, {"type": ["string", "tuple"]}, {"$ref": "#/nope"}],
)
def test_what_is_not_declared_is_anything(schema):
    """No type, an unknown one, or something that is no schema declares nothing."""
    assert declared_type(schema) is ANY or declared_type(schema) == ANY


def test_references_that_multiply_end_soon():
    """Twenty doublings would be a million parts; only the first few hundred are read."""
    levels = {f"n{i}": {"anyOf": [{"$ref": f"#/$defs/n{i + 1}"}] * 2} for i in range(20)}
    schema = {"$defs": {**levels, "n20": {"type": "string"}}, "$ref": "#/$defs/n0"}
    assert declared_type(schema) == ANY


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("text", TypeSet.of("string")),
        (
            "list of dates",
            TypeSet.list_of(TypeSet.of("integer", "number", "string", meaning="date")),
        ),
        ("string[]", TypeSet.list_of(TypeSet.of("string"))),
        ("number or null", TypeSet.of("number", "null")),
        ("number or gizmo", ANY),
        ("x" * 100_000, ANY),
    ],
)
def test_words_of_a_planner_are_types(words, kind):
    """Unknown words are no types, which changes nothing."""
    found = named_type(words)
    assert found == kind or (found.bases == kind.bases and found <= kind)


def test_a_known_value_is_a_type_of_one_value_and_words_are_read():
    """A value that holds itself, has no end or is too large is untyped and not an error."""
    known = TypedSlot.of(Slot(name="n", value="7", bound=True))
    assert known.type == TypeSet.one_of(["7"])
    assert TypedSlot.of(Slot(type="airport code")).type.meanings == {"airport"}
    assert TypedSlot.of(Slot(type="gizmo")).is_untyped
    itself, deep = [], 1
    itself.append(itself)
    for _ in range(5_000):
        deep = [deep]
    for value in (itself, deep, 10**5_000):
        assert TypedSlot.of(Slot(value=value, bound=True)).is_untyped
