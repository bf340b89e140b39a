"""``Policy``: a causal language model, its tokenizer, and how it writes a conversation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from agentkit_training.errors import PolicyError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase, PreTrainedTokenizerFast


@dataclass(frozen=True, kw_only=True)
class Policy:
    """A model that can learn. The weights change under training, the rest does not.

    Attributes:
        name: For records, such as ``smollm2-135m``.
        model: The causal language model, with or without LoRA adapters.
        tokenizer: Its tokenizer, with a chat template.
        end_ids: The tokens that end an answer.
    """

    name: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    end_ids: frozenset[int]

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        device: torch.device = self.model.device
        return device

    @property
    def pad_id(self) -> int:
        """The token that fills short rows; never attended to."""
        pad = self.tokenizer.pad_token_id
        return int(pad) if isinstance(pad, int) else min(self.end_ids)

    @property
    def trainable(self) -> list[torch.nn.Parameter]:
        """The parameters that an optimiser may change."""
        return [one for one in self.model.parameters() if one.requires_grad]

    @property
    def is_adapted(self) -> bool:
        """Whether the model has LoRA adapters, see ``with_lora``."""
        return hasattr(self.model, "disable_adapter")  # no method of a plain model

    @property
    def context_tokens(self) -> int:
        """The longest prompt and answer together, in tokens."""
        return int(getattr(self.model.config, "max_position_embeddings", 1 << 20))


_CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

_CHATML_TOOLS = """\
{%- if tools %}
{{- '<|im_start|>system\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content + '\n\n' }}{% endif %}
{{- '# Tools\n\nYou may call these functions:\n<tools>' }}
{%- for tool in tools %}{{- '\n' + (tool | tojson) }}{% endfor %}
{{- '\n</tools>\n\nAnswer each call as JSON between tags:\n<tool_call>\n' }}
{{- '{"name": "function_name", "arguments": {"parameter": value}}\n</tool_call><|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{- '<|im_start|>user' }}{% endif %}
{{- '\n<tool_response>\n' + message.content + '\n</tool_response>' }}
{%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{- '<|im_end|>\n' }}{% endif %}
{%- elif message.role == 'assistant' and message.tool_calls %}
{{- '<|im_start|>assistant' }}
{%- if message.content %}{{- '\n' + message.content }}{% endif %}
{%- for call in message.tool_calls %}
{{- '\n<tool_call>\n{"name": ' + (call.function.name | tojson) }}
{{- ', "arguments": ' + (call.function.arguments | tojson) + '}\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\n' }}
{%- elif not (tools and loop.first and message.role == 'system') %}
{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{% endif %}"""

_GEMMA = (
    "{{ bos_token }}"
    "{% set lead = namespace(text='') %}"
    "{% for message in messages %}"
    "{% if message['role'] == 'system' %}"
    "{% set lead.text = lead.text + message['content'] + '\n\n' %}"
    "{% else %}"
    "{% set role = 'model' if message['role'] == 'assistant' else 'user' %}"
    "{{ '<start_of_turn>' + role + '\n' + lead.text + message['content'] + '<end_of_turn>\n' }}"
    "{% set lead.text = '' %}"
    "{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)

_PLAIN = (
    "{% for message in messages %}"
    "{{ message['role'] | capitalize + ': ' + message['content'] }}"
    "{{ eos_token if message['role'] == 'assistant' }}{{ '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}"
)

CHAT_TEMPLATES: Mapping[str, str] = MappingProxyType(
    {"chatml": _CHATML, "chatml-tools": _CHATML_TOOLS, "gemma": _GEMMA, "plain": _PLAIN}
)
"""``chatml`` (SmolLM2, Qwen and many others), the same with a place for tools (as Qwen has them),
``gemma``, and ``plain``, which needs no token beside the end of text."""

TURN_ENDS = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<|end|>")
"""Tokens that end a turn in the templates of well-known families."""


def set_template(tokenizer: PreTrainedTokenizerBase, template: str, *, source: str) -> None:
    """Let a tokenizer write conversations in a template.

    Args:
        tokenizer: It is changed.
        template: A name of ``CHAT_TEMPLATES``, or a Jinja template itself.
        source: Where the tokenizer is from, for messages.

    Raises:
        PolicyError: There is no template of that name, or the tokenizer lacks its end of turn.
    """
    text = CHAT_TEMPLATES.get(template, template)
    if text is template and "{" not in template:
        names = ", ".join(sorted(CHAT_TEMPLATES))
        raise PolicyError(f"there is no chat template {template!r}; give one of {names}, or Jinja")
    vocabulary = tokenizer.get_vocab()
    missing = [end for end in TURN_ENDS if end in text and end not in vocabulary]
    if missing:
        raise PolicyError(
            f"the template ends turns with {missing[0]}, which is no token of {source}; "
            "give chat_template='plain', which any tokenizer can write, or one of its family"
        )
    tokenizer.chat_template = text


def no_template(source: str) -> PolicyError:
    """The error for a tokenizer that can not write conversations, such as that of a base model."""
    names = ", ".join(map(repr, sorted(CHAT_TEMPLATES)))
    return PolicyError(
        f"the tokenizer of {source} has no chat template, so that a conversation can not be "
        f"written for it: it may be a base model. Give load_policy a chat_template, one of {names} "
        "or a Jinja template, or take an instruction-tuned model"
    )


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
