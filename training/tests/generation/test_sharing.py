"""Stems: what prompts begin with is read once, and never the whole of a prompt."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from agentkit_training.generation.reading import stems

PROMPTS = st.lists(
    st.lists(st.integers(0, 2), min_size=1, max_size=9).map(tuple),
    min_size=1,
    max_size=7,
    unique=True,
)


def cost(prompts, found):
    """Tokens that are read with these stems."""
    total = sum(stem.length for stem in found)
    return total + sum(len(prompts[place]) - stem.length for stem in found for place in stem.places)


def partitions(order):
    """All ways to cut a sequence into runs."""
    if not order:
        yield []
        return
    for end in range(1, len(order) + 1):
        for rest in partitions(order[end:]):
            yield [order[:end], *rest]


def agreed(prompts, places):
    """How many tokens the prompts share, one of each left over."""
    length = 0
    while length < min(len(prompts[place]) for place in places) - 1:
        if len({prompts[place][length] for place in places}) > 1:
            break
        length += 1
    return length


@settings(deadline=None)
@given(prompts=PROMPTS, least=st.integers(1, 6))
def test_every_prompt_is_in_one_stem_that_it_begins_with(prompts, least):
    """A stem is the beginning of all its prompts and leaves each a token of its own."""
    found = stems(prompts, least=least)
    assert sorted(place for stem in found for place in stem.places) == list(range(len(prompts)))
    for stem in found:
        beginnings = {prompts[place][: stem.length] for place in stem.places}
        assert len(beginnings) == 1
        assert all(len(prompts[place]) > stem.length for place in stem.places)
        if stem.length:
            assert (len(stem.places) - 1) * stem.length >= least


@settings(max_examples=60, deadline=None)
@given(prompts=PROMPTS)
def test_no_grouping_of_neighbours_reads_less(prompts):
    """Among all ways to group prompts in order, none leaves fewer tokens to be read."""
    order = sorted(range(len(prompts)), key=lambda place: prompts[place])
    best = max(
        sum((len(run) - 1) * agreed(prompts, run) for run in runs) for runs in partitions(order)
    )
    total = sum(map(len, prompts))
    assert cost(prompts, stems(prompts, least=1)) == total - best


def test_conversations_that_go_on_share_their_prompt():
    """Second turns of a group share what the first turn read, two tasks apart."""
    first, second = (1,) * 40, (2,) * 50
    prompts = [(*first, 7, 1), (*second, 8, 1), (*first, 7, 2), (*second, 8, 2, 3)]
    found = stems(prompts)
    assert [(stem.length, stem.places) for stem in found] == [(41, (0, 2)), (51, (1, 3))]
