"""Values flow along the lattice of types with a score; names, texts and values tell meanings."""

from __future__ import annotations

import pytest

from agentkit_bench.type_evidence import Guess, TypeEvidence, type_of, type_of_value
from agentkit_bench.type_fit import flow, unify
from agentkit_bench.type_lattice import ANY, TypedSlot, TypeSet

STRING, INTEGER, NUMBER = (TypeSet.of(base) for base in ("string", "integer", "number"))
BOOLEAN, NULL, LIST = (TypeSet.of(base) for base in ("boolean", "null", "array"))
DATE, CITY = (TypeSet.of("string", meaning=meaning) for meaning in ("date", "city"))


def guessed(meaning, confidence=0.9):
    return TypeEvidence(declared=STRING, meanings=(Guess(meaning=meaning, confidence=confidence),))


KINDS = [
    STRING,
    INTEGER,
    NUMBER,
    BOOLEAN,
    LIST,
    DATE,
    CITY,
    STRING | NULL,
    TypeSet.one_of(["km", "mile"]),
    TypeSet.list_of(DATE),
    TypeSet.object_with({"a": DATE}),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_widening_the_target_never_lowers_the_score(kind):
    """A type flows into itself, into anything and into what is wider; undeclared types fit."""
    assert flow(kind, kind) == flow(kind, ANY) == flow(ANY, kind) == 1
    for other in KINDS:
        assert flow(kind, kind | other) == 1
        for more in KINDS:
            assert flow(kind, other) <= flow(kind, other | more)


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
    assert unify(TypedSlot(type=DATE, confidence=0.9), BOOLEAN) == 0.1


def test_an_output_may_be_a_field_or_an_item():
    """A tool that gives an object serves when a field does; a bare object says nothing of fields."""
    price = TypedSlot(type=TypeSet.of("number", meaning="money"))
    record = TypeSet.object_with({"name": STRING, "price": NUMBER})
    assert unify(price, record, is_output=True) == 0.9
    assert unify(price, TypeSet.list_of(record), is_output=True) == pytest.approx(0.81)
    assert unify(price, TypeSet.object_with({"on": BOOLEAN}), is_output=True) == 0
    assert unify(price, ANY, is_output=True) == 1


# --- guessed meanings -----------------------------------------------------------------------------

TEXT = {"type": "string"}
NUMBERS = {"type": "number"}


def surest(evidence):
    return evidence.meanings[0].meaning if evidence.meanings else ""


@pytest.mark.parametrize(
    ("name", "schema", "meaning"),
    [
        ("departure_date", TEXT, "date"),
        ("userId", TEXT, "id:user"),
        ("IPAddress", TEXT, "ip"),
        ("num_rooms", {"type": "integer"}, "count"),
        ("total_price", NUMBERS, "money"),
        ("lat", NUMBERS, "latitude"),
        ("learning_rate", NUMBERS, ""),
        ("", TEXT, ""),
    ],
)
def test_names_tell(name, schema, meaning):
    """The last words of a name say what is meant; most names say nothing."""
    assert surest(type_of(schema, name=name)) == meaning


@pytest.mark.parametrize(
    ("description", "schema", "meaning"),
    [
        ("The day, as YYYY-MM-DD.", TEXT, "date"),
        ("The city and state, e.g. San Francisco, CA", TEXT, "place"),
        ("How far, in kilometers.", NUMBERS, "length"),
    ],
)
def test_texts_tell(description, schema, meaning):
    """Formats, standards and units in a text are clues."""
    assert surest(type_of(schema, description=description)) == meaning


def test_enums_and_observed_values_tell():
    """Values in common with a word list, or of one form, are clues."""
    days = {"type": "string", "enum": ["Monday", "Tuesday", "Sunday"]}
    assert surest(type_of(days)) == "weekday"
    assert surest(type_of(TEXT, observed=["a@b.org", "c@d.org"])) == "email"
    assert type_of(TEXT, observed=["a@b.org", "red hat", "x"]).meanings == ()


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        ("2024-08-15", "date"),
        ("2024-02-30", ""),
        ("2024-08-15T10:00:00Z", "datetime"),
        ("ada@example.org", "email"),
        ("https://example.org/a?b=c", "url"),
        ("192.0.2.1", "ip"),
        ("123e4567-e89b-12d3-a456-426614174000", "uuid"),
        ("+44 20 7946 0958", "phone"),
        ("$1,250.50", "money"),
        ("5 km", "length"),
        ("EUR", "currency"),
        ("France", "country"),
        ("Paris", ""),
        ("a" * 10_000, ""),
        (True, ""),
        (["2024-08-15", "2024-08-16"], "date"),
        (["2024-08-15", "soon"], ""),
    ],
)
def test_values_tell_only_what_their_form_leaves_no_doubt_about(value, meaning):
    """A date is a date; a bare word or number could be many things."""
    assert surest(type_of_value(value)) == meaning
