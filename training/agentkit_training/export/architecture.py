"""How the weights of transformers and those of a GGUF file correspond, for one architecture."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from agentkit_training.errors import ExportError

if TYPE_CHECKING:
    from gguf import GGUFReader
    from numpy.typing import NDArray

_OF_CONFIG = MappingProxyType(
    {
        "llama": "llama",
        "mistral": "llama",
        "gemma3_text": "gemma3",
        "qwen2": "qwen2",
        "qwen3": "qwen3",
    }
)
"""The architecture's name in GGUF by its ``model_type`` in transformers."""

SUPPORTED = tuple(dict.fromkeys(_OF_CONFIG.values()))
"""Architectures whose weights are known to correspond, as GGUF names them."""

_TURNED = re.compile(r"\.self_attn\.([qk])_proj\.(?:weight|bias)$")


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """What has to be known of a model to name and lay out its weights as llama.cpp does.

    Attributes:
        name: As GGUF names it, such as ``llama``.
        layers: How many.
        heads: Heads of queries in each layer.
        key_heads: Heads of keys and values in each layer.
        shapes: Rows and columns of each tensor of the base weights by its name in GGUF; empty
            where only the model's configuration is known.
    """

    name: str
    layers: int
    heads: int
    key_heads: int
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of_model(cls, model: Any) -> Architecture:
        """That of a model of transformers, with or without adapters.

        Raises:
            ExportError: Nobody has looked at how its weights correspond.
        """
        config = model.config
        name = _OF_CONFIG.get(config.model_type)
        if name is None:
            raise ExportError(_unsupported(f"a model of the type {config.model_type!r}"))
        heads = int(config.num_attention_heads)
        return cls(
            name=name,
            layers=int(config.num_hidden_layers),
            heads=heads,
            key_heads=int(getattr(config, "num_key_value_heads", None) or heads),
        )

    @classmethod
    def of_gguf(cls, path: Path) -> Architecture:
        """That of base weights in a GGUF file, with the shapes of all tensors.

        Raises:
            ExportError: There is no such file, it holds no such model, or an unsupported one.
        """
        return cls.of_reader(open_gguf(path), path)

    @classmethod
    def of_reader(cls, reader: GGUFReader, path: Path) -> Architecture:
        """As ``of_gguf``, for a file that is open already."""
        name = _entry(reader, "general.architecture", path)
        if name not in SUPPORTED:
            raise ExportError(_unsupported(f"{path} with the architecture {name!r}"))
        heads = int(_entry(reader, f"{name}.attention.head_count", path))
        key_heads = reader.get_field(f"{name}.attention.head_count_kv")
        return cls(
            name=name,
            layers=int(_entry(reader, f"{name}.block_count", path)),
            heads=heads,
            key_heads=heads if key_heads is None else int(key_heads.contents()),
            shapes={one.name: tuple(map(int, reversed(one.shape))) for one in reader.tensors},
        )

    def tensor_name(self, parameter: str) -> str:
        """The name in GGUF of a parameter of transformers.

        Args:
            parameter: Such as ``model.layers.0.self_attn.q_proj.weight``.

        Raises:
            ExportError: The architecture has no such parameter.
        """
        import gguf

        kind = next(key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == self.name)
        names = gguf.get_tensor_name_map(kind, self.layers)
        found: str | None = names.get_name(parameter, try_suffixes=(".weight", ".bias"))
        if found is None:
            raise ExportError(
                f"the parameter {parameter!r} has no name in a GGUF file of the architecture "
                f"{self.name!r} with {self.layers} layers"
            )
        return found

    def laid_out(self, parameter: str, weight: NDArray[Any]) -> NDArray[Any]:
        """A weight as llama.cpp wants it.

        Rotary positions turn pairs of numbers. transformers pairs the first half of a head with its
        second half; llama.cpp's ``llama`` pairs neighbours, so that the rows of query and key
        weights (and of the half of an adapter that writes them) stand in another order there.
        Gemma's norms multiply by one more than their weight, which llama.cpp adds when converting.
        """
        turned = _TURNED.search(parameter)
        if self.name == "llama" and turned:
            return neighbours(weight, heads=self.heads if turned[1] == "q" else self.key_heads)
        if self.name == "gemma3" and parameter.endswith("norm.weight"):
            return weight + 1
        return weight


def neighbours(weight: NDArray[Any], *, heads: int) -> NDArray[Any]:
    """Rows in the order in which the halves of each head are interleaved.

    Example:
        >>> neighbours(np.arange(8), heads=2).tolist()
        [0, 2, 1, 3, 4, 6, 5, 7]
    """
    halves = weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:])
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(weight.shape)


def open_gguf(path: Path) -> GGUFReader:
    """A reader of a GGUF file; the tensors are mapped, not read.

    Raises:
        ExportError: There is no such file, or it is none.
    """
    import gguf

    if not path.is_file():
        raise ExportError(f"there is no file {path}; give the GGUF file of the base weights")
    try:
        return gguf.GGUFReader(path)
    except (ValueError, IndexError, KeyError, UnicodeDecodeError) as error:
        raise ExportError(
            f"{path} is damaged or no GGUF file ({error}); give that of the base weights"
        ) from error


def _entry(reader: GGUFReader, key: str, path: Path) -> Any:
    entry = reader.get_field(key)
    if entry is None:
        raise ExportError(
            f"{path} has no entry {key!r}, so it is no GGUF file of a language model's weights"
        )
    return entry.contents()


def _unsupported(what: str) -> str:
    return (
        f"how the weights correspond is known for {', '.join(SUPPORTED)}, and not for {what}; "
        "convert it with llama.cpp's own scripts, from what save_policy or save_adapter wrote"
    )
