"""``load_policy``: weights from a folder, a GGUF file or a name, ready to be trained."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agentkit.errors import MissingExtraError
from agentkit.fetch import cache_directory
from agentkit_training.errors import CheckpointError, PolicyError
from agentkit_training.policy.policy import TURN_ENDS, Policy, no_template, set_template
from agentkit_training.policy.saving import PolicyRecord, read_record, save_policy

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


Precision: TypeAlias = Literal["auto", "bf16", "fp32"]


def load_policy(
    source: str | os.PathLike[str],
    *,
    precision: Precision = "auto",
    device: str = "cpu",
    name: str | None = None,
    chat_template: str | None = None,
) -> Policy:
    """Load a causal language model and its tokenizer.

    Code that lies beside weights is never run, and a tokenizer without a padding token gets its
    end of text for it.

    Args:
        source: A folder of transformers, a ``.gguf`` file, or the name of weights that
            ``agentkit models install`` fetched, such as ``local:smollm2-135m``, or that lie in the
            cache of Hugging Face; nothing is downloaded. A folder that ``save_policy`` wrote loads
            many times as fast as a GGUF file, so that named weights are kept as one in the cache
            of agentkit.
        precision: Of the weights; ``auto`` takes bf16 where the device multiplies it itself, see
            ``has_bf16``.
        device: Where to put them, such as ``cpu`` or ``cuda:0``.
        name: For records; None takes that of a saved policy, else it from ``source``.
        chat_template: How conversations are written: a name of ``CHAT_TEMPLATES`` or Jinja. None
            takes the tokenizer's own, which base models do not have.

    Raises:
        PolicyError: There are no such weights or no tokenizer, it has no chat template, or torch
            sees no such device.
        ModelNotFoundError: The weights named after ``local:`` are not installed.
        MissingExtraError: A package that reads the weights is not installed.
    """
    check_device(device)
    if precision == "auto":
        precision = "bf16" if has_bf16(device) else "fp32"
    given = os.fspath(source)
    unpacked = None if chat_template else _unpacked(given, precision)
    place = _located(str(unpacked) if unpacked and unpacked.is_dir() else given)
    tokenizer = _tokenizer(place)
    if chat_template is not None:
        set_template(tokenizer, chat_template, source=place.source)
    if tokenizer.chat_template is None:
        raise no_template(place.source)
    model = _model(place, precision)
    _check_fit(model, tokenizer, place.source)
    policy = Policy(
        name=name or (place.record.name if place.record else _name(place.source)),
        model=model.to(device).eval(),
        tokenizer=tokenizer,
        end_ids=frozenset(place.record.end_ids)
        if place.record is not None and chat_template is None
        else end_ids(tokenizer, model.generation_config, place.header),
    )
    if unpacked and not unpacked.is_dir():
        with suppress(CheckpointError):  # without room for it the next one reads the file again
            save_policy(replace(policy, name=_name(given)), unpacked)
    return policy


def check_device(device: str) -> None:
    """Refuse a GPU that is not there.

    Raises:
        PolicyError: Torch sees none.
    """
    import torch

    if torch.device(device).type == "cuda" and not torch.cuda.is_available():
        raise PolicyError(
            f"the policy's device is {device}, and torch {torch.__version__} sees no GPU; give "
            "cpu, or install a torch that was built for the GPU of this machine"
        )


def has_bf16(device: str) -> bool:
    """Whether a device multiplies bf16 numbers itself.

    A CPU that does trains 2.4 times as fast as in fp32; one that does not takes 30 times as long.

    Args:
        device: Such as ``cpu`` or ``cuda:0``; it is there.
    """
    import torch

    if torch.device(device).type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())  # noqa: SLF001 - has no public name


def end_ids(
    tokenizer: PreTrainedTokenizerBase, generation: Any = None, header: GgufHeader | None = None
) -> frozenset[int]:
    """The tokens that end an answer: those of the model, and the template's own end of turn.

    A base model ends texts with another token than the template that it was given writes after
    each turn, so that both count.

    Args:
        tokenizer: With the chat template that is in use.
        generation: The model's generation configuration.
        header: Of the GGUF file, if it is one.
    """
    found: set[int] = set()
    given = [tokenizer.eos_token_id]
    if header is None:  # a GGUF file has no generation settings, and those made up are wrong
        given.append(getattr(generation, "eos_token_id", None))
    else:
        given.append(header.turn_end_id)
    for ends in given:
        if isinstance(ends, int):
            found.add(ends)
        elif ends is not None:
            found.update(ends)
    vocabulary = tokenizer.get_vocab()
    template = str(tokenizer.chat_template or "")
    found.update(vocabulary[end] for end in TURN_ENDS if end in vocabulary and end in template)
    if not found:
        raise PolicyError(
            "no token ends an answer: the tokenizer has no eos_token, and its chat template ends "
            "turns with none that is known; set tokenizer.eos_token and save it again"
        )
    return frozenset(found)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """Where weights are.

    Attributes:
        source: As the caller gave it.
        folder: A folder, or a name for transformers.
        file: The GGUF file in the folder; None where the folder holds plain weights.
        header: What the GGUF file says of itself.
        record: What a saved policy says of itself.
    """

    source: str
    folder: str
    file: str | None = None
    header: GgufHeader | None = None
    record: PolicyRecord | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """What transformers is told."""
        extra: dict[str, Any] = {} if self.file is None else {"gguf_file": self.file}
        return {"trust_remote_code": False, "local_files_only": True, **extra}


def _located(source: str) -> _Place:
    path = source
    if source.startswith("local:"):
        path = source.removeprefix("local:")
        if not path.endswith(".gguf"):
            path = _installed(path)
    if path.endswith(".gguf"):
        file = Path(path).expanduser()
        if not file.is_file():
            raise PolicyError(f"there is no file {file}; give the path of a .gguf file")
        header = read_header(file)
        return _Place(source=source, folder=str(file.parent), file=file.name, header=header)
    folder = Path(path).expanduser()
    if folder.is_dir():
        return _Place(source=source, folder=str(folder), record=read_record(folder))
    if folder.is_absolute() or path.startswith((".", "~")):
        raise PolicyError(f"there is no folder {folder}; give one that save_policy wrote")
    if not _is_cached(path):
        raise PolicyError(
            f"there is no folder {path}, and no model of that name in the cache of Hugging Face; "
            f"nothing is downloaded here. Fetch it first (hf download ORGANISATION/NAME, with "
            f"--local-dir {path} for a folder), or take other weights. {_ADVICE}"
        )
    return _Place(source=source, folder=path)


def _unpacked(source: str, precision: str) -> Path | None:
    """Where the numbers of named weights are kept once they were read; None for other sources."""
    name = source.removeprefix("local:")
    if name == source or name.endswith(".gguf"):
        return None
    return cache_directory() / "policies" / f"{Path(_installed(name)).stem}-{precision}"


def _is_cached(name: str) -> bool:
    """Whether a model was fetched from Hugging Face before."""
    from huggingface_hub import try_to_load_from_cache

    try:
        return isinstance(try_to_load_from_cache(name, "config.json"), str)
    except ValueError:  # no name that a model could have
        return False


def _installed(name: str) -> str:
    try:
        from agentkit_local import weights
    except ImportError as error:
        raise MissingExtraError(
            f"local:{name}", package="agentkit_local", install="pip install agentkit-local"
        ) from error
    return str(weights.path(name))


def _tokenizer(place: _Place) -> PreTrainedTokenizerBase:
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(place.folder, **place.arguments)
    except Exception as error:  # readers of foreign files raise whatever they like
        raise PolicyError(
            f"no tokenizer could be loaded from {place.source}: {_first_line(error)}. {_ADVICE}"
        ) from error
    if place.record is not None:
        for token, text in place.record.special_tokens.items():
            setattr(tokenizer, token, text)
    if place.header is not None:
        for token, number in place.header.special_ids:
            setattr(tokenizer, token, tokenizer.convert_ids_to_tokens(number))
    if tokenizer.pad_token is None and tokenizer.eos_token is not None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


_ADVICE = (
    "Give a folder that holds weights and tokenizer, as save_policy and save_pretrained write it, "
    "a .gguf file, or local:NAME after `agentkit models install NAME`"
)


def _model(place: _Place, precision: Precision) -> PreTrainedModel:
    import torch
    from transformers import AutoModelForCausalLM

    extra = {} if place.file is None else _as_plain_numbers()
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    try:
        model = AutoModelForCausalLM.from_pretrained(
            place.folder, dtype=dtype, **place.arguments, **extra
        )
    except Exception as error:  # readers of foreign files raise whatever they like
        raise PolicyError(
            f"no weights could be loaded from {place.source}: {_first_line(error)}. {_ADVICE}"
        ) from error
    _forget_quantization(model)
    return model


def _as_plain_numbers() -> dict[str, Any]:
    """Newer transformers would keep GGUF weights packed, which can not be trained."""
    try:
        from transformers.utils.quantization_config import GgufConfig
    except ImportError:
        return {}  # an older one, which unpacks always
    return {"quantization_config": GgufConfig(dequantize=True)}


def _forget_quantization(model: Any) -> None:
    """Weights read from GGUF are plain numbers now; transformers would refuse to save them."""
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config


def _check_fit(model: Any, tokenizer: PreTrainedTokenizerBase, source: str) -> None:
    rows = int(model.get_input_embeddings().weight.shape[0])
    if len(tokenizer) > rows:
        raise PolicyError(
            f"the tokenizer of {source} knows {len(tokenizer)} tokens and the model {rows}: they "
            "do not belong together, or tokens were added without resize_token_embeddings"
        )


def _name(source: str) -> str:
    plain = source.removeprefix("local:")
    path = Path(plain).expanduser()
    return path.stem if path.suffix == ".gguf" else path.name or path.resolve().name


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


_SPECIAL = MappingProxyType(
    {
        "bos_token": "tokenizer.ggml.bos_token_id",
        "eos_token": "tokenizer.ggml.eos_token_id",
        "unk_token": "tokenizer.ggml.unknown_token_id",
        "pad_token": "tokenizer.ggml.padding_token_id",
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class GgufHeader:
    """The part of a GGUF file's metadata that training needs.

    Attributes:
        architecture: Such as ``llama`` or ``gemma3``.
        special_ids: Token ids by their name in transformers, such as ``eos_token``.
        turn_end_id: The token that ends a turn, where the file tells it from the end of text.
    """

    architecture: str
    special_ids: tuple[tuple[str, int], ...]
    turn_end_id: int | None


def read_header(path: Path) -> GgufHeader:
    """What the file says of itself. Its tensors are mapped, not read.

    Raises:
        PolicyError: It is no GGUF file, is cut off or damaged, or is an adapter.
        MissingExtraError: The package that reads such files is not installed.
    """
    try:
        import gguf
    except ImportError as error:
        install = "pip install agentkit-training"
        raise MissingExtraError(f"reading {path}", package="gguf", install=install) from error
    try:
        reader = gguf.GGUFReader(path)
    except (ValueError, IndexError, KeyError, TypeError, OSError) as error:
        raise PolicyError(
            f"{path} is damaged or no whole GGUF file: {error}; get it again from where it came"
        ) from error

    def entry(key: str) -> Any:
        found = reader.get_field(key)
        return None if found is None else found.contents()

    if entry("general.type") == "adapter":
        raise PolicyError(
            f"{path} holds an adapter and no model; give the file of the model that it belongs to"
        )
    special = {name: entry(key) for name, key in _SPECIAL.items()}
    return GgufHeader(
        architecture=str(entry("general.architecture") or ""),
        special_ids=tuple((name, id_) for name, id_ in special.items() if id_ is not None),
        turn_end_id=entry("tokenizer.ggml.eot_token_id"),
    )
