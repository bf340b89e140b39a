"""``Policy``: a causal language model, its tokenizer, and how it writes a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from agentkit_training.errors import PolicyError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


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
