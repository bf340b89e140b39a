"""Many answers at once: each as if it were written alone."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
import torch
from hypothesis import assume, given, settings, strategies as st

from agentkit_training import TokenSequence, tiny_policy
from agentkit_training.engines.scoring import token_logprobs
from agentkit_training.errors import PolicyError
from agentkit_training.fine_tuning.examples import Example
from agentkit_training.fine_tuning.training import block, block_loss
from agentkit_training.generation.decoding import Prompt, complete, draw, inverted, nucleus
from agentkit_training.generation.reading import left_padded, padding_mask, read_prompts, stems
from agentkit_training.policy.lora import with_lora

POLICY = tiny_policy()
TALKATIVE = replace(POLICY, end_ids=POLICY.end_ids | set(range(300, 340)))  # ends after some 10
TOKENS = st.integers(3, 390)
PROMPT = st.lists(TOKENS, min_size=1, max_size=20).map(tuple)


@st.composite
def batches(draw):
    """Prompts with common beginnings and different settings."""
    beginning = draw(st.lists(TOKENS, max_size=25))
    one = st.builds(
        Prompt,
        ids=PROMPT.map(lambda rest: (*beginning, *rest)),
        max_tokens=st.integers(0, 12),
        temperature=st.sampled_from([0.0, 0.7, 1.0]),
        top_p=st.sampled_from([0.9, 1.0]),
        seed=st.integers(0, 3),
    )
    return draw(st.lists(one, min_size=1, max_size=6))


@settings(max_examples=12, deadline=None)
@given(prompts=batches())
def test_an_answer_does_not_depend_on_those_beside_it(prompts):
    """In any batch a prompt is answered as alone: the same tokens, log-probabilities to 1e-5."""
    for prompt, beside in zip(prompts, complete(TALKATIVE, prompts), strict=True):
        (alone,) = complete(TALKATIVE, [prompt])
        assert beside.ids == alone.ids
        assert beside.is_ended == alone.is_ended
        assert beside.logprobs == pytest.approx(alone.logprobs, abs=1e-5)


@settings(max_examples=15, deadline=None)
@given(prompts=batches())
def test_training_reads_what_was_written(prompts):
    """Log-probabilities of sampling and of training agree to 1e-5 in float32."""
    sampled = [replace(prompt, temperature=1.0) for prompt in prompts]
    sequences = [
        TokenSequence(
            prompt=prompt.ids,
            completion=one.ids,
            written=(True,) * len(one.ids),
            logprobs=one.logprobs,
        )
        for prompt, one in zip(sampled, complete(TALKATIVE, sampled), strict=True)
    ]
    for one, read in zip(sequences, token_logprobs(TALKATIVE, sequences), strict=True):
        assert read.tolist() == pytest.approx(one.logprobs, abs=1e-5)


def test_an_answer_is_the_one_that_its_random_numbers_choose():
    """Each token inverts the plain model's distribution at the next number of the row's stream."""
    prompt = Prompt(ids=(5, 6, 7), max_tokens=10, seed=3)
    (found,) = complete(POLICY, [prompt])
    generator = torch.Generator().manual_seed(3)
    draws = torch.rand(10, generator=generator, dtype=torch.float64)
    ids = list(prompt.ids)
    for wanted, drawn in zip(found.ids, draws, strict=False):
        with torch.no_grad():
            logits = POLICY.model(input_ids=torch.tensor([ids])).logits[0, -1]
        cumulated = torch.softmax(logits.double(), -1).cumsum(0)
        assert wanted == int(torch.searchsorted(cumulated, drawn, right=True))
        ids.append(wanted)


def test_greedy_answers_take_the_likeliest_token():
    """At temperature 0 the answer is that of greedy decoding, whatever the seed."""
    prompts = [Prompt(ids=(5, 6, 7), max_tokens=8, temperature=0, seed=seed) for seed in (1, 2)]
    first, second = complete(POLICY, prompts)
    assert first == second
    ids = torch.tensor([[5, 6, 7]])
    wanted = POLICY.model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, do_sample=False
    )
    assert first.ids == tuple(wanted[0, 3:].tolist())


def test_an_end_token_ends_an_answer():
    """The end token is the last one of an answer that ended, and stands nowhere else."""
    prompts = [Prompt(ids=(5, 6), max_tokens=60, seed=seed) for seed in range(16)]
    found = complete(TALKATIVE, prompts)
    assert any(one.is_ended for one in found)
    for one in found:
        assert not TALKATIVE.end_ids & set(one.ids[:-1])
        assert one.is_ended == (one.ids[-1] in TALKATIVE.end_ids)
        assert len(one.ids) == 60 or one.is_ended
        assert len(one.ids) == len(one.logprobs)


def test_weights_that_give_no_probabilities_are_told():
    """A policy that has diverged is an error that says so, and no answer."""
    policy = tiny_policy()
    with torch.no_grad():
        policy.model.lm_head.weight.fill_(float("nan"))
    for temperature in (0.0, 1.0):
        asked = [Prompt(ids=(5, 6), max_tokens=3, temperature=temperature)]
        with pytest.raises(PolicyError, match=r"tiny gives no probabilities.*lower learning rate"):
            complete(policy, asked)


MASSES = st.lists(st.integers(0, 50), min_size=1, max_size=700).filter(any)
DRAWS = st.floats(0, 1, exclude_max=True)


def number(*values):
    return torch.tensor(values, dtype=torch.float64)


def exact(masses, draw):
    """The inverse of the cumulated masses, in rational numbers."""
    target = Fraction(draw) * sum(masses)
    cumulated = 0
    for token, mass in enumerate(masses):
        cumulated += mass
        if cumulated > target:
            return token
    raise AssertionError("the draw is below 1")


@settings(deadline=None)
@given(masses=MASSES, draw=DRAWS)
def test_a_token_is_drawn_as_exact_numbers_say(masses, draw):
    """A draw u takes the first token whose cumulated probability is more than u."""
    target = Fraction(draw) * sum(masses)
    assume(abs(target - round(target)) > Fraction(1, 10**9) or target == round(target))
    found = inverted(torch.tensor([masses], dtype=torch.float32), number(draw))
    assert int(found) == exact(masses, draw)


@settings(max_examples=30, deadline=None)
@given(size=st.integers(1, 2000), seed=st.integers(0, 9))
def test_the_largest_draw_finds_the_last_possible_token(size, seed):
    """However probabilities are rounded, a token is in range and never one of probability 0."""
    probabilities = torch.rand(3, size, generator=torch.Generator().manual_seed(seed))
    probabilities[:, size // 2 + 1 :] = 0
    found = inverted(probabilities, number(*[1 - 2**-53] * 3))
    assert (found <= size // 2).all()
    assert (probabilities.gather(1, found[:, None]) > 0).all()


@settings(max_examples=40, deadline=None)
@given(masses=MASSES, top_p=st.floats(0.01, 1))
def test_the_nucleus_is_the_smallest_that_reaches_its_mass(masses, top_p):
    """The tokens kept reach the mass, without the least likely of them they do not."""
    probabilities = torch.tensor([masses], dtype=torch.float64)
    probabilities /= probabilities.sum()
    kept = nucleus(probabilities, number(top_p))[0]
    chosen = kept[kept > 0]
    assert len(chosen) >= 1
    assert chosen.sum() >= min(top_p, 1.0) - 1e-9
    assert chosen.sum() - chosen.min() < top_p + 1e-9
    left = probabilities[0][kept == 0]
    assert not len(left) or left.max() <= chosen.min()


@pytest.mark.parametrize("top_p", [1.0, 0.5])
def test_log_probabilities_are_those_of_the_whole_distribution(top_p):
    """Neither the nucleus nor greedy choice changes what is recorded; temperature does."""
    logits = torch.tensor([[2.0, 1.0, 0.0]] * 3)
    temperatures = torch.tensor([1.0, 2.0, 0.0])
    tokens, logprobs = draw(
        logits,
        temperatures=temperatures,
        top_ps=number(top_p, top_p, top_p),
        draws=number(0.1, 0.1, 0.99),
    )
    assert tokens.tolist() == [0, 0, 0]
    wanted = [torch.log_softmax(logits[0] / heat, -1)[0] for heat in (1.0, 2.0, 1.0)]
    assert torch.allclose(logprobs, torch.stack(wanted))


def test_logits_in_bf16_are_drawn_from_in_float32():
    """Half-precision logits give float32 log-probabilities that sum to one."""
    logits = torch.randn(1, 500, generator=torch.Generator().manual_seed(1)).bfloat16()
    _, logprobs = draw(logits, temperatures=torch.ones(1), top_ps=None, draws=number(0.3))
    assert logprobs.dtype == torch.float32


def largest_copy(work) -> int:
    """The most numbers that one copy moved."""
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
    ) as seen:
        work()
    shapes = [one.input_shapes[0] for one in seen.events() if one.name == "aten::copy_"]
    return max(torch.Size(shape).numel() for shape in shapes)


def coarse_policy():
    """A policy in bfloat16, which is what PyTorch copies weights for."""
    policy = tiny_policy()
    policy.model.to(torch.bfloat16)
    return policy


def last_layer(policy) -> int:
    """How many numbers it has."""
    return policy.model.get_output_embeddings().weight.numel()


def test_prompts_are_read_without_copies_of_the_last_layer():
    """Reading prompts of different lengths copies nothing as large as the last layer."""
    policy = with_lora(coarse_policy())
    prompts = [tuple(range(3, 3 + length)) for length in (5, 6, 7, 8)]
    with torch.inference_mode():
        assert largest_copy(lambda: read_prompts(policy, prompts)) < last_layer(policy)


def test_frozen_weights_are_not_copied_to_learn_adapters():
    """A step of adapters copies nothing as large as the last layer, forward or backward."""
    policy = with_lora(coarse_policy())
    examples = [
        Example(task_id=str(length), prompt=(5,) * length, completion=(7, 2)) for length in (3, 4)
    ]
    one = block(examples, pad=policy.pad_id)
    assert largest_copy(lambda: block_loss(policy, one).backward()) < last_layer(policy)


@settings(max_examples=15, deadline=None)
@given(rests=st.lists(PROMPT, min_size=2, max_size=4), held=st.lists(st.booleans(), max_size=3))
def test_what_learns_sees_itself_wherever_it_is_padded(rests, held):
    """With gradients each column sees itself, and a token every token until it and no padding."""
    _, own = left_padded(rests, POLICY.pad_id)
    before = torch.tensor([held] * len(rests), dtype=torch.long).reshape(len(rests), len(held))
    whole = torch.cat([before, own], 1)
    mask = padding_mask(POLICY, own, before=before)
    assert (mask is None) == bool(whole.all())
    for row, column in () if mask is None else own.nonzero().tolist():
        sees = (mask[row, 0, column] == 0).tolist()
        until = len(held) + column + 1
        assert sees == [bool(one) and at < until for at, one in enumerate(whole[row])]
    if mask is not None:
        assert bool((mask.diagonal(len(held), 2, 3) == 0).all())


def test_gradients_are_those_of_an_example_alone():
    """Padding before an example changes nothing of what is learned of it."""
    examples = [
        Example(task_id=str(length), prompt=(5, 9, 4) * length, completion=(7, 2))
        for length in (1, 3)
    ]
    together = gradient(block(examples, pad=POLICY.pad_id))
    alone = [gradient(block([one], pad=POLICY.pad_id)) for one in examples]
    assert torch.allclose(together, alone[0] + alone[1], atol=1e-6)


def gradient(one) -> torch.Tensor:
    """What the weights are told of a block."""
    policy = tiny_policy()
    block_loss(policy, one).backward()
    return torch.cat([weight.grad.flatten() for weight in policy.trainable])


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
