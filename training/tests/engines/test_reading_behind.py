"""Sequences read behind their prompts: the scores and the gradient of each read by itself."""

import pytest
import torch
from hypothesis import given, settings, strategies as st
from transformers import Gemma3ForCausalLM, Gemma3TextConfig

from agentkit_training import Policy, TokenSequence, tiny_policy
from agentkit_training.engines.objective import Limits
from agentkit_training.engines.scoring import read_sequences, token_logprobs

POLICY = tiny_policy()
TOKENS = st.integers(3, 390)


def sequence(prompt, completion):
    return TokenSequence(
        prompt=tuple(prompt),
        completion=tuple(completion),
        written=(True,) * len(completion),
        logprobs=(0.0,) * len(completion),
    )


def alone(policy, one):
    """The log-probabilities as the plain model computes them."""
    ids = torch.tensor([[*one.prompt, *one.completion]])
    logits = policy.model(input_ids=ids).logits[0, len(one.prompt) - 1 : -1].float()
    return torch.log_softmax(logits, -1).gather(1, ids[0, len(one.prompt) :, None])[:, 0]


def flat_gradient(policy):
    found = torch.cat([one.grad.flatten() for one in policy.model.parameters()])
    policy.model.zero_grad(set_to_none=True)
    return found


def weighed(places, logprobs):
    """A loss that gives every token a weight of its own, by its sequence and its value."""
    return sum((place % 3 - 1.3) * one.sum() for place, one in zip(places, logprobs, strict=True))


def gradient_behind(policy, sequences, limits):
    def visit(places, scores):
        sizes = [len(sequences[place].completion) for place in places]
        return weighed(places, scores.logprobs.split(sizes))

    read_sequences(policy, sequences, visit, limits=limits)
    return flat_gradient(policy)


def gradient_alone(policy, sequences):
    filled = [place for place, one in enumerate(sequences) if one.completion]
    weighed(filled, [alone(policy, sequences[place]) for place in filled]).backward()
    return flat_gradient(policy)


@st.composite
def conversations(draw):
    """Prompts that begin alike and go on differently, with several answers each."""
    beginning = draw(st.lists(TOKENS, max_size=24))
    rests = draw(st.lists(st.lists(TOKENS, min_size=1, max_size=6), min_size=1, max_size=4))
    answers = st.lists(st.lists(TOKENS, max_size=9), min_size=1, max_size=4)
    found = [sequence(beginning + rest, one) for rest in rests for one in draw(answers)]
    return draw(st.permutations(found))


LIMITS = st.builds(Limits, tokens=st.integers(1, 200), logits=st.integers(1, 40_000))


@settings(max_examples=25, deadline=None)
@given(sequences=conversations(), limits=LIMITS)
def test_scores_are_those_of_each_sequence_alone(sequences, limits):
    """Whatever shares a prompt or a piece, log-probabilities agree to 1e-5, in the same order."""
    found = token_logprobs(POLICY, sequences, limits=limits)
    for one, logprobs in zip(sequences, found, strict=True):
        assert len(logprobs) == len(one.completion)
        if one.completion:
            assert torch.allclose(logprobs, alone(POLICY, one), atol=1e-5)


@settings(max_examples=15, deadline=None)
@given(sequences=conversations(), limits=LIMITS)
def test_the_gradient_is_that_of_each_sequence_alone(sequences, limits):
    """The cut behind the prompts and the pieces change the gradient by rounding alone."""
    if not any(one.completion for one in sequences):
        return
    found = gradient_behind(POLICY, sequences, limits)
    wanted = gradient_alone(POLICY, sequences)
    assert (found - wanted).norm() <= 1e-5 * wanted.norm()


def test_entropies_are_those_of_the_distributions():
    """A token's entropy is that of the distribution that it stood in."""
    one = sequence([5, 6, 7], [8, 9])
    kept = []
    with torch.no_grad():
        read_sequences(POLICY, [one], lambda _, scores: kept.append(scores.entropies))
        logits = POLICY.model(input_ids=torch.tensor([[5, 6, 7, 8]])).logits[0, 2:]
    wanted = torch.distributions.Categorical(logits=logits).entropy()
    assert torch.allclose(kept[0], wanted, atol=1e-5)


def test_a_temperature_divides_the_logits():
    """Scores at a temperature are those of the logits divided by it."""
    one = sequence([5, 6, 7], [8])
    (found,) = token_logprobs(POLICY, [one], temperature=2.0)
    with torch.no_grad():
        logits = POLICY.model(input_ids=torch.tensor([[5, 6, 7]])).logits[0, -1]
    assert torch.allclose(found[0], torch.log_softmax(logits / 2, -1)[8], atol=1e-5)


def gemma():
    """A tiny Gemma 3: most of its layers see a window of the newest tokens."""
    tiny = tiny_policy()
    config = Gemma3TextConfig(
        vocab_size=len(tiny.tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        sliding_window=6,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    )
    torch.manual_seed(0)
    model = Gemma3ForCausalLM(config).eval()
    return Policy(name="gemma", model=model, tokenizer=tiny.tokenizer, end_ids=tiny.end_ids)


@pytest.mark.parametrize("is_checkpointed", [False, True], ids=["cache", "checkpointing"])
def test_a_model_of_sliding_windows_is_read_exactly(is_checkpointed):
    """Padding and sharing leave what each token's window holds as it is."""
    policy = gemma()
    sequences = [
        sequence([*range(5, 5 + length), *range(30, 45)], range(50, 50 + length + number))
        for length in (3, 9)
        for number in range(2)
    ]
    wanted = gradient_alone(policy, sequences)
    policy.model.train(is_checkpointed)
    if is_checkpointed:
        policy.model.gradient_checkpointing_enable({"use_reentrant": False})
    found = gradient_behind(policy, sequences, Limits())
    assert (found - wanted).norm() <= 1e-5 * wanted.norm()


def test_weights_in_bf16_give_scores_in_float32():
    """Logits are summed in float32 whatever the weights are, and the gradient comes through."""
    policy = tiny_policy()
    policy.model.to(torch.bfloat16)
    one = sequence(range(5, 30), range(40, 60))
    (found,) = token_logprobs(policy, [one])
    (wanted,) = token_logprobs(POLICY, [one])
    assert found.dtype == torch.float32
    assert torch.allclose(found, wanted, atol=0.05)
    assert gradient_behind(policy, [one], Limits()).isfinite().all()
