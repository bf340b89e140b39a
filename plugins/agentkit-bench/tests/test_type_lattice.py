"""Types with meanings, and how well a tool fits them."""

import pytest
from hypothesis import given, strategies as st

from agentkit.retrieval import Slot
from agentkit_bench.type_evidence import Guess, TypeEvidence, type_of, type_of_value
from agentkit_bench.type_fit import flow, unify
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
