"""Types form a distributive lattice; each law is tried on random types."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings, strategies as st

from agentkit.errors import UsageError
from agentkit.tools.types.lattice import ANY, MEANINGS, NEVER, TypeSet, join

LAWS = {
    "join commutes": lambda a, b: (a | b) == (b | a),
    "meet commutes": lambda a, b: (a & b) == (b & a),
    "join associates": lambda a, b, c: ((a | b) | c) == (a | (b | c)),
    "meet associates": lambda a, b, c: ((a & b) & c) == (a & (b & c)),
    "join is idempotent": lambda a: (a | a) == a,
    "meet is idempotent": lambda a: (a & a) == a,
    "join absorbs meet": lambda a, b: (a | (a & b)) == a,
    "meet absorbs join": lambda a, b: (a & (a | b)) == a,
    "meet distributes": lambda a, b, c: (a & (b | c)) == ((a & b) | (a & c)),
    "join distributes": lambda a, b, c: (a | (b & c)) == ((a | b) & (a | c)),
    "any is the top": lambda a: (a | ANY) == ANY and (a & ANY) == a and a <= ANY,
    "never is the bottom": lambda a: (a | NEVER) == a and (a & NEVER) == NEVER <= a,
    "order is reflexive": lambda a: a <= (a | a),
    "order is antisymmetric": lambda a, b: not (a <= b <= a) or a == b,
    "order is transitive": lambda a, b, c: not (a <= b <= c) or a <= c,
    "order is that of join": lambda a, b: (a <= b) == ((a | b) == b),
    "order is that of meet": lambda a, b: (a <= b) == ((a & b) == a),
    "join bounds from above": lambda a, b: a <= (a | b) and b <= (a | b),
    "meet bounds from below": lambda a, b: (a & b) <= a and (a & b) <= b,
    "equal types have one hash": lambda a, b: hash(a | b) == hash(b | a),
}


@pytest.mark.parametrize("law", LAWS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_the_lattice_laws_hold(types, law, data):
    """Whatever types are taken, the law holds."""
    holds = LAWS[law]
    taken = [data.draw(types) for _ in range(holds.__code__.co_argcount)]
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


def test_identifiers_of_different_owners_exclude_each_other():
    """``id:hotel`` and ``id:user`` are identifiers, and no value is both."""
    hotel, user = (TypeSet.of("string", meaning=f"id:{owner}") for owner in ("hotel", "user"))
    assert (hotel & user).is_never
    assert (hotel | user) <= TypeSet.of("string", meaning="id")


def test_enums_are_compared_by_their_sets():
    """The order and the repetition of values do not matter; 1.0 is 1, and true is not."""
    assert TypeSet.one_of(["b", "a", "b"]) == TypeSet.one_of(["a", "b"])
    assert TypeSet.one_of([1.0]) == TypeSet.one_of([1]) != TypeSet.one_of([True])
    met = TypeSet.one_of(["a", "b"]) & TypeSet.one_of(["b", "c"])
    assert met.constant() == ("b",)


def test_a_list_of_nothing_is_nothing():
    """A list or an object whose parts contradict each other has no value."""
    dates = TypeSet.list_of(TypeSet.of("string", meaning="date"))
    assert (dates & TypeSet.list_of(TypeSet.of("integer"))).is_never
    assert TypeSet.object_with({"a": NEVER}).is_never


def test_join_of_many():
    """Of none, join is the bottom."""
    assert join([]) == NEVER
    assert join([TypeSet.of("integer"), TypeSet.of("number")]) == TypeSet.of("number")


def test_types_survive_pickling():
    """A type goes to another process and comes back equal."""
    kind = TypeSet.one_of(["km"]) | TypeSet.list_of(TypeSet.of("number"))
    assert pickle.loads(pickle.dumps(kind)) == kind


@pytest.mark.parametrize("meaning", sorted(MEANINGS))
def test_each_meaning_makes_a_type(meaning):
    """All names in the list are usable."""
    assert TypeSet.of("string", meaning=meaning).meanings == {meaning}


@pytest.mark.parametrize("arguments", [{"meaning": "gizmo"}, {"meaning": "id:"}])
def test_an_unknown_meaning_is_refused(arguments):
    """The message names what was given and where to look."""
    with pytest.raises(UsageError, match="no known meaning"):
        TypeSet.of("string", **arguments)


def test_an_unknown_json_type_is_refused():
    """The message lists the types that there are."""
    with pytest.raises(UsageError, match="use one of string, number"):
        TypeSet.of("text")
