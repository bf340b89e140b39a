"""``tiny_policy``: a random model of a few hundred thousand weights, for tests and dry runs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from agentkit_training.policy.policy import Policy, set_template

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_PROMPT = (
    "You are a function calling assistant. Choose the function that answers the question and fill "
    "in its arguments from the question. Answer with JSON only, in the form "
    '{"calls": [{"name": "function_name", "arguments": {"parameter": value}}]}. Functions:'
)
_WORDS = (
    _PROMPT,
    "Result of get_price: 42. Please refine your answer.",
    json.dumps({"calls": [{"name": "get_price", "arguments": {"item": "apple", "unit": "kg"}}]}),
)


def tiny_tokenizer(
    texts: Iterable[str] = (), *, size: int = 600, chat_template: str = "chatml"
) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer trained on the spot: it reads any text and knows nothing.

    Args:
        texts: What to train on beside a few sentences of tool prompts.
        size: Tokens in its vocabulary, at least 300.
        chat_template: A name of ``CHAT_TEMPLATES`` or Jinja.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=list(_SPECIAL),
        show_progress=False,
    )
    core.train_from_iterator([*_WORDS, *texts], trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token=_SPECIAL[2], pad_token=_SPECIAL[0]
    )
    set_template(tokenizer, chat_template, source="the tiny policy")
    return tokenizer


def tiny_policy(
    texts: Iterable[str] = (),
    *,
    seed: int = 0,
    layers: int = 2,
    width: int = 64,
    context_tokens: int = 4096,
    chat_template: str = "chatml",
) -> Policy:
    """A random Llama of ``layers`` layers in float32, deterministic for a seed.

    Args:
        texts: What its tokenizer is trained on, beside a few sentences of tool prompts.
        seed: Of its weights.
        layers: How deep.
        width: Of its hidden states; a multiple of 8.
        context_tokens: The longest prompt and answer together.
        chat_template: ``chatml``, ``chatml-tools`` which has a place for tools, or Jinja.

    Example:
        >>> tiny_policy().name
        'tiny'
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = tiny_tokenizer(texts, chat_template=chat_template)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context_tokens,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    return Policy(
        name="tiny",
        model=model.eval(),
        tokenizer=tokenizer,
        end_ids=frozenset({int(tokenizer.eos_token_id)}),
    )
