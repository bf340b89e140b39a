"""Types form a distributive lattice, and values flow along it."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, strategies as st

from agentkit.tools import (
    ANY,
    NEVER,
    Guess,
    TypedSlot,
    TypeEvidence,
    TypeSet,
    flow,
    unify,
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


def test_enums_are_compared_by_their_sets():
    """The order and the repetition of values do not matter; 1.0 is 1, and true is not."""
    assert TypeSet.one_of(["b", "a", "b"]) == TypeSet.one_of(["a", "b"])
    assert TypeSet.one_of([1.0]) == TypeSet.one_of([1]) != TypeSet.one_of([True])
    met = TypeSet.one_of(["a", "b"]) & TypeSet.one_of(["b", "c"])
    assert met.constant() == ("b",)


# --- flow, unification and keys -------------------------------------------------------------------

STRING, INTEGER, NUMBER = (TypeSet.of(base) for base in ("string", "integer", "number"))
BOOLEAN, NULL, LIST = (TypeSet.of(base) for base in ("boolean", "null", "array"))
DATE, CITY = (TypeSet.of("string", meaning=meaning) for meaning in ("date", "city"))


def guessed(meaning, confidence=0.9):
    return TypeEvidence(declared=STRING, meanings=(Guess(meaning=meaning, confidence=confidence),))


@given(data=st.data())
def test_a_type_flows_into_itself_and_into_anything(types, data):
    """Unification is reflexive, and undeclared types fit on either side."""
    kind = data.draw(types)
    assert flow(kind, kind) == flow(kind, ANY) == flow(ANY, kind) == 1


@given(data=st.data())
def test_a_narrower_type_flows_into_a_wider_one(types, data):
    """Whatever is below in the lattice fits with score 1."""
    one, two = data.draw(types), data.draw(types)
    assume(not (one & two).is_never)
    assert flow(one & two, one) == 1
    assert flow(one, one | two) == 1


@given(data=st.data())
def test_widening_the_target_never_lowers_the_score(types, data):
    """The score is monotone in what is asked for."""
    source, target, more = (data.draw(types) for _ in range(3))
    assume(not target.is_never)
    assert flow(source, target) <= flow(source, target | more)


@pytest.mark.parametrize(
    ("source", "target", "score"),
    [
        (INTEGER, NUMBER, 1.0),
        (NUMBER, INTEGER, 0.9),
        (INTEGER, STRING, 0.5),
        (TypeSet.one_of(["12"]), INTEGER, 0.5),
        (TypeSet.one_of(["twelve"]), INTEGER, 0.0),
        (TypeSet.one_of([" KM "]), TypeSet.one_of(["km", "mile"]), 0.9),
        (TypeSet.one_of(["km"]), TypeSet.one_of(["km", "mile"]), 1.0),
        (DATE, TypeSet.of("string", meaning="datetime"), 0.5),
        (DATE, CITY, 0.0),
        (CITY, TypeSet.of("string", meaning="place"), 1.0),
        (STRING, TypeSet.list_of(STRING), 0.5),
        (BOOLEAN, NUMBER, 0.0),
        (TypeSet.of("object"), STRING, 0.0),
        (TypeSet.object_with({"a": DATE}), TypeSet.object_with({"a": CITY}), 0.0),
    ],
)
def test_pairs_have_their_documented_scores(source, target, score):
    """Containment is 1, overlap .9, another form .5, exclusion 0."""
    assert flow(source, target) == pytest.approx(score)


def test_a_guess_counts_as_much_as_it_is_sure():
    """A likely meaning that does not fit costs more than an unlikely one, and none costs nothing."""
    scores = [flow(DATE, guessed("city", sure)) for sure in (0.0, 0.3, 0.9)]
    assert scores == pytest.approx([1.0, 0.7, 0.1])
    assert flow(DATE, guessed("moment")) == 1
    assert flow(STRING, guessed("city")) == 1


def test_an_output_may_be_a_field_or_an_item():
    """A tool that gives an object serves when a field does; a bare object says nothing of fields."""
    price = TypedSlot(type=TypeSet.of("number", meaning="money"))
    record = TypeSet.object_with({"name": STRING, "price": NUMBER})
    assert unify(price, record, is_output=True) == 0.9
    assert unify(price, TypeSet.list_of(record), is_output=True) == pytest.approx(0.81)
    assert unify(price, TypeSet.object_with({"on": BOOLEAN}), is_output=True) == 0
    assert unify(price, ANY, is_output=True) == 1
