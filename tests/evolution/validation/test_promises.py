"""A promise is told from a word that is also the name of a thing."""

from __future__ import annotations

import pytest

from agentkit.evolution.validation import validate
from agentkit.testing.rewrites import rewrite


def codes(text):
    """What a new usage rule of a tool about cars draws."""
    return [failed.code for failed in validate(rewrite("cars_details", {"rule": text})).failed]


@pytest.mark.parametrize(
    "text",
    [
        "The guarantee is under warranty.",
        "Shows whether the car's guarantee can be passed on.",
        "The guarantee period is counted in months.",
        "The guarantees of the maker are listed as well.",
        "The guarantee of the maker is listed as well.",
        "Cars without guarantee have an empty field.",
        "La garantie est comptée en mois.",
        "Les voitures sous garantie ont une date de fin.",
        "保证金以欧元计。",
        "保証期間は月で数える。",
    ],
)
def test_a_guarantee_as_a_thing_is_no_promise(text):
    """What a car may have can be told of."""
    assert codes(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Guarantees the lowest price.",
        "We guarantee the price.",
        "The price is guaranteed.",
        "The answers come with a guarantee.",
        "It gives the guarantee that every price is right.",
        "It gives the guarantee of success.",
        "Offered with the guarantee of correct prices.",
        "Le prix est garanti.",
        "Livraison garantie en tout cas.",
        "Avec la garantie que tout est exact.",
        "保证价格准确。",
        "価格は保証されます。",
    ],
)
def test_a_guarantee_as_a_promise_is_refused(text):
    """What the definition does not bear out is refused, also as a noun that says of what."""
    assert "false_claim" in codes(text)
