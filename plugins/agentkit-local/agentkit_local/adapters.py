"""LoRA adapters: small files of trained weights that llama.cpp adds to those of a model.

One comes with the plugin and has a name: ``calls``, for the weights ``smollm2-135m``. What it was
trained on, what it gains and what it is not good for stands in ``shipped/MODEL_CARD.md``.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from agentkit.errors import ModelNotFoundError, UsageError
from agentkit_local.metadata import ADAPTER_KIND, ARCHITECTURE, KIND, MAGIC, texts_of

SHIPPED: Mapping[str, Path] = MappingProxyType(
    {"calls": Path(__file__).parent / "shipped" / "calls.gguf"}
)
"""The adapters that come with the plugin."""


@dataclass(frozen=True, kw_only=True)
class Adapter:
    """A LoRA adapter in a GGUF file, as ``agentkit-training`` writes it.

    Attributes:
        path: The file.
        scale: How strongly it counts: 1 as it was trained, 0 not at all.
    """

    path: Path
    scale: float = 1.0

    @cached_property
    def label(self) -> str:
        """For records: the file's name, the start of its digest, and a scale that is not 1.

        The digest, because a file that was trained further keeps its name, and what it answers
        must not be taken for what the earlier one answered.
        """
        with self.path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        scale = "" if self.scale == 1 else f"@{self.scale:g}"
        return f"{self.path.stem}@{digest[:8]}{scale}"


def open_adapter(path: str | os.PathLike[str], *, scale: float, model: Path) -> Adapter:
    """Find out, without loading it, whether a file can be an adapter for a model.

    Whether its shapes fit the model's is seen when both are loaded.

    Args:
        path: The adapter's GGUF file, or a name of ``SHIPPED``.
        scale: How strongly it counts.
        model: The GGUF file of the model.

    Raises:
        ModelNotFoundError: There is no such file, it is no LoRA adapter in GGUF, or one for another
            architecture.
        UsageError: ``scale`` is not a number.
    """
    file = SHIPPED.get(os.fspath(path)) or Path(path).expanduser()
    if not math.isfinite(scale):
        raise UsageError(f"an adapter cannot count {scale} times; give a number such as 1 or 0.5")
    _check_gguf(file)
    told = texts_of(file, (ARCHITECTURE, KIND, ADAPTER_KIND))
    if told.get(KIND) != "adapter" or told.get(ADAPTER_KIND) != "lora":
        raise ModelNotFoundError(
            f"{file} is a GGUF file of type {told.get(KIND, 'model')!r}, not a LoRA adapter; give "
            "the adapter's file, and the model's in front: local:MODEL?adapter=FILE"
        )
    wanted = texts_of(model, (ARCHITECTURE,)).get(ARCHITECTURE)
    if told.get(ARCHITECTURE) != wanted:
        raise ModelNotFoundError(
            f"{file} is an adapter for a model of the architecture {told.get(ARCHITECTURE)!r}, and "
            f"{model} is of {wanted!r}; take the model that it was trained on"
        )
    return Adapter(path=file, scale=scale)


def _check_gguf(path: Path) -> None:
    if path.is_dir():
        raise ModelNotFoundError(
            f"{path} is a folder; an adapter of PEFT in a folder has to be written as GGUF first "
            "(agentkit_training.export.adapter_to_gguf), then give that file"
        )
    if not path.is_file():
        raise ModelNotFoundError(
            f"there is no adapter {path}; give the path of a .gguf file, as training exports it, "
            f"or the name of one that is shipped: {', '.join(SHIPPED)}"
        )
    with path.open("rb") as file:
        start = file.read(len(MAGIC))
    if start != MAGIC:
        raise ModelNotFoundError(
            f"{path} is no adapter in GGUF: it starts with {start!r}, not {MAGIC!r}. One of PEFT "
            "(safetensors) has to be converted (agentkit_training.export.adapter_to_gguf)"
        )
