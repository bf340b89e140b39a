"""What is read of the errors and descriptions of tools."""

from __future__ import annotations

import pytest

from agentkit.evolution.proposers.constraints import stated_in_error, stated_values
from agentkit.tools.rules import Between, Form, OneOf

SETS = [
    ("periods must be one of 36, 48 or 60, got 31", ["36", "48", "60"]),
    ("`unit` must be one of 'celsius', 'kelvin', got the string 'F'", ["celsius", "kelvin"]),
    ("'F' is not one of ['celsius', 'kelvin']", ["celsius", "kelvin"]),
    ("Input should be 'a', 'b' or 'c' [type=literal_error, input_value='d']", ["a", "b", "c"]),
    ("Invalid enum value. Expected 'Salmon' | 'Tuna', received 'x'", ["Salmon", "Tuna"]),
    ("unknown variant `x`, expected one of `a`, `b`", ["a", "b"]),
    ("argument --foo: invalid choice: 'x' (choose from 'a', 'b')", ["a", "b"]),
    ("unsupported unit 'F'. Supported units: celsius, kelvin.", ["celsius", "kelvin"]),
    ("Allowed values: New York, Los Angeles. Please retry.", ["New York", "Los Angeles"]),
    ("31 not in [36, 48, 60]", ["36", "48", "60"]),
    ("periods must be 36, 48, or 60; other values cause errors.", ["36", "48", "60"]),
    ('expected one of ["a", "it\'s"], got "c"', ["a", "it's"]),
    ("size can only be 'S', 'M' or 'L'", ["S", "M", "L"]),
    ("must be one of 1.5, 2.5. Try again.", ["1.5", "2.5"]),
    ("must be one of: EN, ES, IT", ["EN", "ES", "IT"]),
    ("must be one of low or mid or high", ["low", "mid", "high"]),
    ("Allowed values: 24 hours, Home Delivery.", ["24 hours", "Home Delivery"]),
]

NO_SETS = [
    "must be an integer, got the string 'x'",
    "one of celsius or kelvin for this station",
    "Valid options are: a, b, c and 4 more",
    "must be one of 'a', 'b', 'c' and 3 more, got 'x'",
    "must be one of: a, b, ...",
    "must be one of a, b, etc.",
    "must be in [0, 100]",  # a range or two values: nobody knows
    "must be 1 or 2 characters long",
    "must be one of 36, 48, 60 months",
    "allowed values are between 1 and 30",
    "Allowed values: Parking, Food and Beverages, VIP Seating.",
    "Allowed values: positive integers.",
    "one of the arguments is wrong",
    "such as 'PNG' or 'JPEG'",
    "must be one of 'a', 'a'",
    "must be one of " + ", ".join(f"'value {n}'" for n in range(60)),  # cut by the record below
]

RANGES = [
    ("must be between 1 and 30 days, got 45", (1, 30)),
    ("value 31 is greater than 30", (None, 30)),
    ("Input should be greater than or equal to 1", (1, None)),
    ("must not be more than 5", (None, 5)),
    ("must not exceed 5,000", (None, 5000)),
    ("0 is less than the minimum of 1", (1, None)),
    ("31 is greater than the maximum of 30", (None, 30)),
    ("1 <= periods <= 60", (1, 60)),
    ("rating must be 1-5", (1, 5)),
    ("in the range [-90, 90]", (-90, 90)),
    ("cannot be negative", (0, None)),
    ("at least 2.5", (2.5, None)),
    ("must be 5 or more", (5, None)),
]


FORMS = [
    ("the day must be given as YYYY-MM-DD", ("date", "")),
    ("time data '2' does not match format '%Y-%m-%d'", ("date", "")),
    ("must be a date such as 2026-05-31, got x", ("date", "")),
    ("'x' is not a 'date-time'", ("date-time", "")),
    ("value is not a valid email address", ("email", "")),
    ("use HH:MM", ("", r"^([01]\d|2[0-3]):[0-5]\d$")),
    ("must match the pattern ^[A-Z]{2}$, got the string 'x'", ("", "^[A-Z]{2}$")),
]


@pytest.mark.parametrize(("text", "values"), SETS)
def test_lists_of_values(text, values):
    """Lists in the words of validators in the wild, and of authors, are read whole."""
    [found] = [one.rule for one in stated_in_error(text) if isinstance(one.rule, OneOf)]
    assert list(found.values) == values


@pytest.mark.parametrize("text", NO_SETS)
def test_what_is_no_closed_list(text):
    """Examples, lists that go on, bounds and prose are no closed lists."""
    assert not [one for one in stated_in_error(text[:500]) if isinstance(one.rule, OneOf)]


@pytest.mark.parametrize(("text", "bounds"), RANGES)
def test_bounds(text, bounds):
    """Bounds are read whether the text asks for something or says what is wrong."""
    found = [one.rule for one in stated_in_error(text) if isinstance(one.rule, Between)]
    assert [(one.minimum, one.maximum) for one in found] == [bounds]


@pytest.mark.parametrize(("text", "form"), FORMS)
def test_forms(text, form):
    """Forms with a name, forms with a picture, and forms in words."""
    [found] = [one.rule for one in stated_in_error(text) if isinstance(one.rule, Form)]
    assert (found.format, found.pattern) == form


def test_the_values_that_tools_state():
    """What the tool says itself may stand in a description; what it echoes may not."""
    texts = ["periods must be one of 36, 48, got 31", "at most 90 days, got 91"]
    assert stated_values(texts) == {"36", "48", "90"}


@pytest.mark.parametrize(
    "text",
    [
        *(
            f"area must be at most {number}"
            for number in (
                *("1.000.000", "1 000 000", "1'000'000", "1_000_000", "1 million", "2k"),
                *("0x10", "1/2", "10^6", "2 * 300"),
            )
        ),
        "area must be at most 12 per day",
        "area must be at most 3 when note is given",
        "if note is given, area must be at most 3",
        "area must be at most 3 on Sundays",
        "area must be at most 3 or at least 100",
        "unit must be one of 'a', 'b' unless note is given",
    ],
)
def test_numbers_in_other_forms_and_demands_of_some_calls_state_nothing(text):
    """A bound that was read wrong, or that holds for some calls alone, would refuse right calls."""
    assert stated_in_error(text) == ()


def test_numbers_with_an_exponent_are_read_whole():
    """Python and JSON write large numbers so."""
    [found] = stated_in_error("area must be less than or equal to 1.5e+06, got 2e6")
    assert found.rule == Between(parameter="", maximum=1_500_000.0)
