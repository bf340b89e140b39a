"""The colours of labels can be told apart, also by people who see fewer colours."""

import math
import re
from itertools import combinations

import pytest

from agentkit.evaluation.results.page import STYLE
from agentkit.evaluation.results.texts import LABELS

SIGHT = {
    "all colours": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "no green": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "no blue": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
"""What is left of linear RGB (Machado, Oliveira and Fernandes 2009, severity 1)."""

FAULTS = {"unjudged", "gold_error", "checker_error"}
"""Labels of one grey: none says anything about the agent."""


def colours(scheme):
    """The colour of each label, as linear RGB."""
    light, dark = STYLE.split("@media (prefers-color-scheme: dark)")
    names = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", light if scheme == "light" else dark))
    rules = re.findall(r"((?:\.\w+(?:, )?)+) \{ --own: var\(--(\w+)\); \}", STYLE)
    return {
        label.strip(". "): linear(names[name])
        for labels, name in rules
        for label in labels.split(",")
    }


def linear(colour):
    """``#rrggbb`` as three numbers that add up as light does."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]


def times(matrix, vector):
    """A matrix times a vector."""
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def oklab(rgb):
    """A colour in a space in which distances are as large as they look (Ottosson 2020)."""
    cones = times(
        (
            (0.4122214708, 0.5363325363, 0.0514459929),
            (0.2119034982, 0.6806995451, 0.1073969566),
            (0.0883024619, 0.2817188376, 0.6299787005),
        ),
        [min(1.0, max(0.0, one)) for one in rgb],
    )
    return times(
        (
            (0.2104542553, 0.7936177850, -0.0040720468),
            (1.9779984951, -2.4285922050, 0.4505937099),
            (0.0259040371, 0.7827717662, -0.8086757660),
        ),
        [one ** (1 / 3) for one in cones],
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_label_has_a_colour(scheme):
    """Each label of a diagnosis has one, and only faults share theirs."""
    found = colours(scheme)
    assert set(found) == set(LABELS)
    own = [tuple(colour) for label, colour in found.items() if label not in FAULTS]
    assert len(set(own)) == len(LABELS) - len(FAULTS)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("sight", SIGHT)
def test_no_two_labels_look_alike(scheme, sight):
    """Two labels are at least 0.08 apart, four times what is just seen as a difference."""
    seen = {name: oklab(times(SIGHT[sight], rgb)) for name, rgb in colours(scheme).items()}
    for (one, a), (other, b) in combinations(seen.items(), 2):
        if not {one, other} <= FAULTS:
            assert math.dist(a, b) >= 0.08, f"{one} and {other}"
