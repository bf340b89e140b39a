"""``ModelShape``: the few numbers of an architecture that memory depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from agentkit.errors import UsageError


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelShape:
    """A decoder-only transformer with gated feed-forward layers, as Llama, Qwen and Gemma are.

    Attributes:
        name: For records.
        layers: Transformer blocks.
        hidden: Width of the residual stream.
        intermediate: Width of the feed-forward layers.
        heads: Attention heads.
        kv_heads: Heads of keys and values.
        head_dim: Width of a head.
        vocabulary: Tokens in the vocabulary.
        is_tied: Whether input and output embeddings are one matrix.
    """

    name: str
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    is_tied: bool

    @property
    def parameters(self) -> int:
        """Weights in all; norms and biases, a thousandth of them, are left out.

        Example:
            >>> round(SHAPES["smollm2-135m"].parameters / 1e6)
            134
        """
        embeddings = self.vocabulary * self.hidden * (1 if self.is_tied else 2)
        return embeddings + self.layers * self.block_parameters

    @property
    def block_parameters(self) -> int:
        """Weights of one transformer block."""
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        return attention + 3 * self.hidden * self.intermediate

    def lora_parameters(self, rank: int) -> int:
        """Weights of adapters of ``rank`` on every linear layer of every block."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        widths = [
            self.hidden + queries,  # q
            2 * (self.hidden + keys),  # k and v
            queries + self.hidden,  # o
            3 * (self.hidden + self.intermediate),  # gate, up and down
        ]
        return self.layers * rank * sum(widths)

    @property
    def cache_numbers_per_token(self) -> int:
        """Numbers in the cache of keys and values for each token."""
        return 2 * self.layers * self.kv_heads * self.head_dim


def shape_of(config: Any, *, name: str) -> ModelShape:
    """The shape that a transformers configuration describes.

    Args:
        config: A ``PretrainedConfig`` of a decoder-only model.
        name: For records.

    Raises:
        UsageError: It lacks one of the numbers.
    """
    config = getattr(config, "text_config", None) or config
    try:
        heads = int(config.num_attention_heads)
        hidden = int(config.hidden_size)
        return ModelShape(
            name=name,
            layers=int(config.num_hidden_layers),
            hidden=hidden,
            intermediate=int(config.intermediate_size),
            heads=heads,
            kv_heads=int(getattr(config, "num_key_value_heads", None) or heads),
            head_dim=int(getattr(config, "head_dim", None) or hidden // heads),
            vocabulary=int(config.vocab_size),
            is_tied=bool(getattr(config, "tie_word_embeddings", False)),
        )
    except AttributeError as error:
        raise UsageError(
            f"the configuration of {name!r} does not say {error.name!r}; plans are made for "
            "decoder-only models of the Llama kind, or give a name of " + ", ".join(SHAPES)
        ) from error


def known_shape(weights: str) -> ModelShape | None:
    """The shape of the weights that a configuration names, before they are loaded.

    Args:
        weights: As ``policy.weights`` has it. A folder of transformers says its shape itself;
            otherwise the last part of the name may be one of ``SHAPES``, ``-instruct`` or not.

    Returns:
        None where nothing says it.

    Example:
        >>> known_shape("models/Qwen2.5-7B-Instruct").layers
        28
    """
    if (Path(weights).expanduser() / "config.json").is_file():
        from transformers import AutoConfig

        return shape_of(AutoConfig.from_pretrained(weights), name=weights)
    name = Path(weights.removeprefix("local:")).name.lower()
    fitting = [one for one in SHAPES if name == one or name.startswith(f"{one}-")]
    return SHAPES[fitting[0]] if fitting else None


def _shape(  # noqa: PLR0917 - a row of the table below
    name: str,
    layers: int,
    hidden: int,
    intermediate: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    vocabulary: int,
    is_tied: bool,  # noqa: FBT001 - as above
) -> ModelShape:
    return ModelShape(
        name=name,
        layers=layers,
        hidden=hidden,
        intermediate=intermediate,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocabulary=vocabulary,
        is_tied=is_tied,
    )


SHAPES: Mapping[str, ModelShape] = MappingProxyType(
    {
        shape.name: shape
        for shape in (
            _shape("smollm2-135m", 30, 576, 1536, 9, 3, 64, 49_152, True),
            _shape("smollm2-1.7b", 24, 2048, 8192, 32, 32, 64, 49_152, True),
            _shape("qwen2.5-0.5b", 24, 896, 4864, 14, 2, 64, 151_936, True),
            _shape("qwen2.5-1.5b", 28, 1536, 8960, 12, 2, 128, 151_936, True),
            _shape("qwen2.5-3b", 36, 2048, 11_008, 16, 2, 128, 151_936, True),
            _shape("qwen2.5-7b", 28, 3584, 18_944, 28, 4, 128, 152_064, False),
            _shape("qwen2.5-14b", 48, 5120, 13_824, 40, 8, 128, 152_064, False),
            _shape("qwen2.5-32b", 64, 5120, 27_648, 40, 8, 128, 152_064, False),
            _shape("llama-3.1-8b", 32, 4096, 14_336, 32, 8, 128, 128_256, False),
        )
    }
)
"""Shapes of models that the papers and the configurations of the scaling guide name."""
