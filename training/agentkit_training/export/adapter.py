"""A trained LoRA adapter as GGUF, for the local model."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from agentkit_training.atomic import whole_file
from agentkit_training.errors import ExportError
from agentkit_training.export.architecture import Architecture
from agentkit_training.policy.adapter_files import CONFIG, WEIGHTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PREFIX = "base_model.model."
_BEYOND = ("use_dora", "rank_pattern", "alpha_pattern", "modules_to_save")
_HALVES = {"lora_A": "lora_a", "lora_B": "lora_b"}

AdapterPrecision: TypeAlias = Literal["f32", "f16"]


@dataclass(frozen=True, kw_only=True)
class _Lora:
    """An adapter of PEFT as it lies in its folder.

    Attributes:
        alpha: What the products are multiplied by, before they are divided by the rank.
        halves: The weights by name of the parameter (``....q_proj.weight``) and of the half.
    """

    alpha: float
    halves: Mapping[tuple[str, str], NDArray[Any]]


def adapter_to_gguf(
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    base: Architecture,
    precision: AdapterPrecision = "f32",
) -> Path:
    """Write an adapter of PEFT as a GGUF adapter, as ``LocalModel(adapter=...)`` takes it.

    llama.cpp adds alpha / rank * B A to a weight. Adapters that were scaled otherwise
    (``use_rslora``) get an alpha that comes to the same.

    Args:
        folder: What ``save_adapter`` or PEFT's ``save_pretrained`` wrote.
        out: The file; made whole or not at all.
        base: The base weights: ``Architecture.of_gguf(path)``, with which every shape is checked,
            or ``Architecture.of_model(policy.model)``.
        precision: Of the numbers; half the size costs three digits.

    Raises:
        ExportError: The folder holds no LoRA adapter, one with parts that a GGUF adapter has no
            place for, or one that does not fit the base weights.
        OSError: It can not be written.
    """
    import gguf

    lora = _read(Path(folder))
    dtype = {"f32": np.float32, "f16": np.float16}[precision]
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    with whole_file(out) as draft:
        writer = gguf.GGUFWriter(draft, base.name)
        writer.add_type(gguf.GGUFType.ADAPTER)
        writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
        writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, lora.alpha)
        for name, half in _tensors(lora, base):
            writer.add_tensor(name, np.ascontiguousarray(half.astype(dtype)))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    return Path(out)


def _tensors(lora: _Lora, base: Architecture) -> Iterator[tuple[str, NDArray[Any]]]:
    for parameter in dict.fromkeys(parameter for parameter, _ in lora.halves):
        pair = {half: lora.halves.get((parameter, half)) for half in _HALVES}
        first, second = pair["lora_A"], pair["lora_B"]
        if first is None or second is None:
            raise ExportError(f"the adapter has one half of {parameter!r} only; it is damaged")
        name = base.tensor_name(parameter)
        _check_shape(name, (second.shape[0], first.shape[1]), base)
        yield f"{name}.lora_a", first
        yield f"{name}.lora_b", base.laid_out(parameter, second)


def _check_shape(name: str, shape: tuple[int, ...], base: Architecture) -> None:
    if not base.shapes:
        return
    there = base.shapes.get(name)
    if there is None:
        raise ExportError(
            f"the adapter changes {name!r}, which the base weights do not hold (where the words' "
            "weights are shared, there is no output of its own); train it on other modules"
        )
    if there != shape:
        raise ExportError(
            f"the adapter changes {name!r} as {shape[0]}x{shape[1]} numbers, and the base weights "
            f"have {there[0]}x{there[1]}; take the base weights that it was trained on"
        )


def _read(folder: Path) -> _Lora:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    for name in (CONFIG, WEIGHTS):
        if not (folder / name).is_file():
            raise ExportError(
                f"{folder} holds no adapter of PEFT: it has no {name}; give the folder that "
                "save_adapter or PEFT wrote"
            )
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        scale = _alpha(config)
        weights = {  # NumPy has no bfloat16
            name: one.float().numpy() for name, one in load_file(folder / WEIGHTS).items()
        }
    except (ValueError, KeyError, TypeError, SafetensorError) as error:
        raise ExportError(f"the adapter in {folder} is damaged: {error}") from error
    return _Lora(alpha=scale, halves=dict(map(_half, weights, weights.values())))


def _half(name: str, weight: NDArray[Any]) -> tuple[tuple[str, str], NDArray[Any]]:
    module, _, half = name.removeprefix(_PREFIX).removesuffix(".weight").rpartition(".")
    if half not in _HALVES or not name.endswith(".weight"):
        raise ExportError(
            f"the adapter holds {name!r}, and a GGUF adapter has a place for the two halves of "
            "linear layers alone; merge it (merged(policy)) and export the weights "
            "(weights_to_gguf)"
        )
    return (f"{module}.weight", half), weight


def _alpha(config: Mapping[str, Any]) -> float:
    """The number that llama.cpp divides by the rank; refuses what it can not do."""
    kind = config["peft_type"]
    parts = [name for name in _BEYOND if config.get(name)]
    parts += ["bias"] if config.get("bias", "none") != "none" else []
    if kind != "LORA" or parts:
        what = ", ".join(parts) or f"an adapter of type {kind!r}"
        raise ExportError(
            f"a GGUF adapter has no place for {what}; merge it (merged(policy)) and export "
            "the weights (weights_to_gguf)"
        )
    alpha, rank = float(config["lora_alpha"]), int(config["r"])
    return alpha * math.sqrt(rank) if config.get("use_rslora") else alpha
