"""Configurations: read into records, written out whole, mistakes named with their lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pytest
from hypothesis import example, given, strategies as st

from agentkit.errors import UsageError
from agentkit_training.config.reading import parse_config, read_config, written_config


@dataclass(frozen=True, kw_only=True)
class Lora:
    rank: int = 16


@dataclass(frozen=True, kw_only=True)
class Source:
    name: str
    count: int | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    weights: str
    rate: float = 1e-4
    kind: Literal["lean", "trl"] = "lean"
    lora: Lora | None = None
    inner: Lora = field(default_factory=Lora)
    sources: tuple[Source, ...] = ()
    seeds: tuple[int, ...] = (1, 2)

    def __post_init__(self):
        if self.rate <= 0:
            raise ValueError(f"rate is {self.rate}; give a positive one")


WHOLE = """\
weights: tiny
rate: 0.5
lora:
  rank: 4
sources:
  - name: a
  - name: b
    count: 3
"""


def test_a_file_becomes_the_record(tmp_path):
    """Sections are records of their own, and what a file leaves out has its default."""
    path = tmp_path / "plan.yaml"
    path.write_text(WHOLE)
    wanted = Plan(
        weights="tiny",
        rate=0.5,
        lora=Lora(rank=4),
        sources=(Source(name="a"), Source(name="b", count=3)),
    )
    assert read_config(path, Plan) == wanted


plans = st.builds(
    Plan,
    weights=st.text(max_size=9),
    rate=st.floats(1e-9, 1e9),
    kind=st.sampled_from(["lean", "trl"]),
    lora=st.none() | st.builds(Lora, rank=st.integers()),
    sources=st.lists(st.builds(Source, name=st.text(max_size=9), count=st.integers())).map(tuple),
    seeds=st.lists(st.integers()).map(tuple),
)


@given(plan=plans)
@example(plan=Plan(weights="a\x85b", sources=(Source(name="\u2028\u2029 "),)))
def test_a_written_record_is_read_back(plan):
    """What is written out in full is the same configuration."""
    assert parse_config(written_config(plan), Plan) == plan


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("weights: tiny\nrat: 1\n", "line 2: rat is not known here"),
        ("weights: tiny\nlora:\n  rank: many\n", "line 3: lora.rank"),
        ("weights: tiny\nkind: fast\n", "line 2: kind"),
        ("rate: 1.0\n", "weights: Field required"),
        ("weights: tiny\nrate: -1\n", "rate is -1"),
        ("weights: tiny\nrate: 1.0\nweights: big\n", "line 3: weights is given in line 1 already"),
        ("lora:\n  rank: 1\n  rank: 2\nweights: tiny\n", "line 3: rank is given in line 2"),
        ("weights: &a [*a]\n", "weights"),
        ("- a\n", "holds a list"),
        ("a: [", "is not YAML"),
    ],
)
def test_a_mistake_is_named_with_its_line(text, told):
    """Unknown keys, wrong types and wrong values say where they stand and what is wrong."""
    with pytest.raises(UsageError) as error:
        parse_config(text, Plan)
    assert told in str(error.value)


def test_single_keys_are_changed_from_outside():
    """A change names a key by its sections, which need not be in the file."""
    plan = parse_config(WHOLE, Plan, changes=["rate=2e-5", "inner.rank=8", "lora=null"])
    assert plan.rate == pytest.approx(2e-5)
    assert plan.inner == Lora(rank=8)
    assert plan.lora is None


@pytest.mark.parametrize("change", ["rate", "=1", "rate.x=1", "rate=[1"])
def test_a_change_that_is_none_is_refused(change):
    """A change needs a key, a value, and sections that are sections."""
    with pytest.raises(UsageError, match=r"change|section|YAML"):
        parse_config(WHOLE, Plan, changes=[change])


def test_an_absent_file_is_named(tmp_path):
    """There being no file is said with its name."""
    with pytest.raises(UsageError, match=r"none\.yaml"):
        read_config(tmp_path / "none.yaml", Plan)
