"""``Policy``: a causal language model, its tokenizer, and how it writes a conversation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
