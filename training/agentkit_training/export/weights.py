"""The whole of a tuned policy as a GGUF file, for the local model."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agentkit_training.atomic import whole_file
from agentkit_training.errors import ExportError
from agentkit_training.export.architecture import Architecture, open_gguf
from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    import torch
    from gguf import GGUFReader, GGUFWriter
    from numpy.typing import NDArray

WeightPrecision: TypeAlias = Literal["f32", "f16", "bf16", "q8_0"]

_FILE_TYPES = MappingProxyType({"f32": 0, "f16": 1, "q8_0": 7, "bf16": 32})
_EMBEDDING, _OUTPUT = "token_embd.weight", "output.weight"
_UNTRAINED = frozenset({"rope_freqs.weight"})  # factors of rotary positions
_TIED = ("embed_tokens", "lm_head")
_WRAPPERS = re.compile(r"\.base_layer(?=\.)|\.modules_to_save\.\w+(?=\.)")
_WRAPPED = ".base_layer.weight"
_OWN = ("GGUF.", "general.architecture", "general.file_type", "general.quantization_version")


def weights_to_gguf(
    policy: Policy,
    out: str | os.PathLike[str],
    *,
    like: str | os.PathLike[str],
    precision: WeightPrecision = "f16",
) -> Path:
    """Write a policy's weights, adapters merged, as a GGUF file that ``LocalModel`` takes.

    Words, templates and everything else that is no weight come from ``like``: the file that the
    policy was loaded from, or any other conversion of the same base weights. The policy itself is
    not changed.

    Args:
        policy: What was trained.
        out: The file; made whole or not at all.
        like: A GGUF file of the base weights, in any precision.
        precision: Of matrices; vectors stay in f32. ``q8_0`` halves the size of ``f16``, with 8
            bits for each number and a scale for each 32.

    Raises:
        ExportError: ``like`` is not a file of this model's base weights, or of an architecture that
            is not supported.
        OSError: It can not be written.
    """
    import gguf

    source = Path(like)
    reader = open_gguf(source)
    base = Architecture.of_reader(reader, source)
    parameters = parameter_names(policy, base, source)
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    with whole_file(out) as draft:
        writer = gguf.GGUFWriter(draft, base.name)
        _copy_entries(reader, writer)
        writer.add_file_type(_FILE_TYPES[precision])
        for tensor in reader.tensors:
            name = parameters.get(tensor.name)
            if name is None:
                writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
                continue
            weight = merged_weight(policy, name).float().cpu().numpy()
            weight = base.laid_out(plain_name(name), weight)
            _check_size(tensor.name, weight.shape, base, source)
            _add(writer, tensor.name, weight, precision)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    return Path(out)


def merged_weight(policy: Policy, name: str) -> torch.Tensor:
    """A parameter of a policy, with the products of its active LoRA adapters added.

    The sum is a new tensor in float32, so that the policy keeps its own weights to the last bit:
    PEFT's merging and unmerging rounds them.
    """
    import torch

    model: Any = policy.model
    parameter: torch.Tensor = model.get_parameter(name).detach()
    if not name.endswith(_WRAPPED):
        return parameter
    layer = model.get_submodule(name.removesuffix(_WRAPPED))
    merged = parameter.float()
    with torch.no_grad():
        for adapter in layer.active_adapters:
            if adapter in layer.lora_A or adapter in layer.lora_embedding_A:
                merged = merged + layer.get_delta_weight(adapter).float()
    return merged


def plain_name(parameter: str) -> str:
    """The name that a parameter of a model with adapters has without them.

    Example:
        >>> plain_name("base_model.model.model.layers.0.mlp.up_proj.base_layer.weight")
        'model.layers.0.mlp.up_proj.weight'
    """
    return _WRAPPERS.sub("", parameter.removeprefix("base_model.model."))


def parameter_names(policy: Policy, base: Architecture, source: Path) -> dict[str, str]:
    """The policy's own name of each tensor of the file that comes from it.

    Args:
        policy: With or without adapters.
        base: That of the file.
        source: The file, for messages.

    Raises:
        ExportError: The file is not one of this model's base weights.
    """
    every = [name for name, _ in policy.model.named_parameters()]
    tied = bool(getattr(policy.model.config, "tie_word_embeddings", False))
    _check_mergeable(every, tied=tied)
    names = [name for name in every if ".lora_" not in name and ".original_module." not in name]
    found = {base.tensor_name(plain_name(name)): name for name in names}
    if tied and _OUTPUT in base.shapes:  # one here, written twice there
        found[_OUTPUT] = found[_EMBEDDING]
    absent = sorted(found.keys() - base.shapes.keys())
    surplus = sorted(base.shapes.keys() - found.keys() - _UNTRAINED)
    if absent or surplus:
        tensor = [*absent, *surplus][0]
        who = "only the policy has" if absent else "the policy does not have"
        raise ExportError(
            f"{source} is not a file of the weights that were trained: {who} {tensor!r}; give the "
            "GGUF file that the policy was loaded from"
        )
    return found


def _check_mergeable(names: Sequence[str], *, tied: bool) -> None:
    """Refuse adapters whose effect is more than a product that is added to a weight of its own."""
    for name in names:
        is_tied = tied and ".lora_" in name and any(part in name for part in _TIED)
        is_more = ".lora_magnitude" in name or (".lora_B." in name and name.endswith(".bias"))
        if is_tied or is_more:
            why = "weights that two layers share" if is_tied else "more than a product of matrices"
            raise ExportError(
                f"the adapter's {name!r} can not be merged here: it is {why}. Merge it "
                "first (merged(policy)), or train without it"
            )


def _check_size(name: str, shape: tuple[int, ...], base: Architecture, source: Path) -> None:
    if base.shapes[name] != shape:
        raise ExportError(
            f"{source} is not a file of the weights that were trained: {name!r} has "
            f"{base.shapes[name]} numbers there, and {shape} in the policy"
        )


def _copy_entries(reader: GGUFReader, writer: GGUFWriter) -> None:
    for name, entry in reader.fields.items():
        if not name.startswith(_OWN):
            inner = entry.types[-1] if len(entry.types) > 1 else None
            writer.add_key_value(name, entry.contents(), entry.types[0], inner)


def _add(writer: GGUFWriter, name: str, weight: NDArray[Any], precision: WeightPrecision) -> None:
    import gguf
    import numpy as np

    kinds = gguf.GGMLQuantizationType
    kind = {"f32": kinds.F32, "f16": kinds.F16, "bf16": kinds.BF16, "q8_0": kinds.Q8_0}[precision]
    if weight.ndim < 2:
        kind = kinds.F32
    elif kind is kinds.Q8_0 and weight.shape[-1] % 32:
        kind = kinds.F16  # rows are cut into blocks of 32
    data = gguf.quants.quantize(np.ascontiguousarray(weight, dtype=np.float32), kind)
    writer.add_tensor(name, data, raw_dtype=kind)
