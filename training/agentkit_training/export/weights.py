"""The whole of a tuned policy as a GGUF file, for the local model."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from agentkit_training.errors import ExportError
from agentkit_training.files import whole_file
from agentkit_training.policy.policy import Policy
from agentkit_training.policy.saving import CONFIG, WEIGHTS

if TYPE_CHECKING:
    import torch
    from gguf import GGUFReader, GGUFWriter
    from numpy.typing import NDArray


SUPPORTED = ("llama", "gemma3", "qwen2", "qwen3")
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
        shapes: Rows and columns of each tensor of the base weights by its name in GGUF.
    """

    name: str
    layers: int
    heads: int
    key_heads: int
    shapes: Mapping[str, tuple[int, ...]]

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
) -> Path:
    """Write a policy's weights, adapters merged, as a GGUF file that ``LocalModel`` takes.

    Words, templates and everything else that is no weight come from ``like``: the file that the
    policy was loaded from, or any other conversion of the same base weights. Matrices are written
    in f16, vectors in f32; ``llama-quantize`` makes smaller files of it. The policy itself is not
    changed.

    Args:
        policy: What was trained.
        out: The file; made whole or not at all.
        like: A GGUF file of the base weights, in any precision.

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
    with _written(out, base.name) as writer:
        _copy_entries(reader, writer)
        writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
        for tensor in reader.tensors:
            name = parameters.get(tensor.name)
            if name is None:
                writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
                continue
            weight = merged_weight(policy, name).float().cpu().numpy()
            weight = base.laid_out(plain_name(name), weight)
            _check_size(tensor.name, weight.shape, base, source)
            kind = np.float32 if weight.ndim < 2 else np.float16
            writer.add_tensor(tensor.name, np.ascontiguousarray(weight, dtype=kind))
    return Path(out)


@contextmanager
def _written(out: str | os.PathLike[str], architecture: str) -> Iterator[GGUFWriter]:
    """A writer of a GGUF file, which is there whole when the block ends."""
    import gguf

    Path(out).parent.mkdir(parents=True, exist_ok=True)
    with whole_file(out) as draft:
        writer = gguf.GGUFWriter(draft, architecture)
        yield writer
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


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
        base: The base weights, ``Architecture.of_gguf(path)``, with which every shape is checked.
        precision: Of the numbers; half the size costs three digits.

    Raises:
        ExportError: The folder holds no LoRA adapter, one with parts that a GGUF adapter has no
            place for, or one that does not fit the base weights.
        OSError: It can not be written.
    """
    import gguf

    lora = _read(Path(folder))
    dtype = {"f32": np.float32, "f16": np.float16}[precision]
    with _written(out, base.name) as writer:
        writer.add_type(gguf.GGUFType.ADAPTER)
        writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
        writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, lora.alpha)
        for name, half in _tensors(lora, base):
            writer.add_tensor(name, np.ascontiguousarray(half.astype(dtype)))
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
