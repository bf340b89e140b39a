"""``Manifest``: what a hand-over folder says of itself, and whether its files are those."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from agentkit import open_store
from agentkit.errors import MissingExtraError
from agentkit.evolution.repository import LibraryStore
from agentkit.interop.export import (
    artifact_of,
    open_artifact,
    read_artifact,
    restore_artifact,
    write_artifact,
)
from agentkit.library import Library
from agentkit.library.chain_check import verify_chain, verify_library
from agentkit.library.events import Signer
from agentkit.library.store import Store
from agentkit_training.errors import ExportError
from agentkit_training.files import file_digest


def export_library(
    store: LibraryStore, path: str | os.PathLike[str], *, signer: Signer | None = None
) -> str:
    """Write a store's newest library as an artifact, with its history and the gates' evidence.

    Only what the Tool Manager wrote is exported: each library version must be told of by an event
    of a whole chain, and hold the definitions that the events say. What was written around the
    manager has passed no gate, and is refused.

    Args:
        store: The store that the Tool Manager of the training run wrote to.
        path: The file; one that ends in ``.gz`` is compressed.
        signer: Signs it.

    Returns:
        The digest of the content, for ``read_artifact(expected=...)``.

    Raises:
        ExportError: The history is not whole, or tells of less than the library holds.
        StoreError: The library holds no tool.
        OSError: The file can not be written.
    """
    events = store.events()
    found = [*verify_chain(events), *verify_library(store, events)]
    faults = [fault for fault in found if fault.code != "unchecked"]  # signatures: no key is here
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise ExportError(
            f"the library was not written by the Tool Manager alone: {faults[0].message}{more}. "
            "Make every change through it (agentkit.evolution.ToolManager), on a new store"
        )
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    return write_artifact(artifact_of(store), path, signer=signer)


def library_of(artifact: str | Path | None) -> Library | None:
    """The library of an artifact; None for no artifact.

    Raises:
        StoreError: The file can not be read.
        ArtifactError: The file is no artifact, or was changed.
    """
    return open_artifact(f"artifact:{artifact}").load() if artifact else None


def restored_store(artifact: str | Path) -> Store:
    """A store in memory with the library of an artifact and its history, to go on from.

    Args:
        artifact: A file of the user's own, which is trusted.

    Raises:
        StoreError: The file can not be read.
        ArtifactError: The file is no artifact, or was changed.
    """
    store = open_store("memory:")
    restore_artifact(read_artifact(Path(artifact).expanduser()), store, trusted=True)
    return store


Kind: TypeAlias = Literal["adapter", "weights", "unchanged"]

MANIFEST = "handover.json"
FORMAT_VERSION = 1
"""Version of the folder's form. A newer one is refused, never guessed at."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class BaseWeights(_Record):
    """The weights that training began with.

    Attributes:
        name: As ``agentkit run --model`` takes it, ``local:smollm2-135m``; for a file of the user's
            own the file's name alone, since its place is another one on each machine.
        sha256: Digest of the GGUF file.
        licence: SPDX expression; empty where the file does not tell. What was made from the
            weights is bound by it.
    """

    name: str
    sha256: str
    licence: str


class Manifest(_Record):
    """What lies in a hand-over folder.

    Attributes:
        format: Version of the folder's form.
        base: The weights that training began with.
        kind: What became of them: an ``adapter`` for them, other ``weights``, or ``unchanged``.
        library_version: The library's version in the store that training wrote; None for none.
        library_digest: Digest of the artifact's content.
        versions: Of the packages that wrote the folder.
        files: SHA-256 of each other file by its path in the folder.
    """

    format: int = FORMAT_VERSION
    base: BaseWeights
    kind: Kind
    library_version: int | None = None
    library_digest: str = ""
    versions: dict[str, str]
    files: dict[str, str]


def base_weights(base: str | Path) -> tuple[Path, BaseWeights]:
    """The GGUF file of base weights, and what the manifest says of it.

    Args:
        base: The name of installed weights, such as ``local:smollm2-135m``, or a GGUF file.

    Raises:
        ExportError: There is no such file.
        ModelNotFoundError: The named weights are not installed.
    """
    named = _named(str(base))
    if named is not None:
        return named
    path = Path(str(base).removeprefix("local:")).expanduser()
    if not path.is_file():
        raise ExportError(
            f"there are no base weights {base}; give a GGUF file, or local:NAME after "
            "`agentkit models install NAME`"
        )
    return path, BaseWeights(name=path.name, sha256=file_digest(path), licence=_licence(path))


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a hand-over folder, every file of which is there as it was written.

    Raises:
        ExportError: There is none, it is damaged or of a newer form, or a file is missing or was
            changed.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise ExportError(
            f"{folder} is no hand-over: it has no {MANIFEST}; give the folder that hand_over wrote"
        )
    try:
        found = Manifest.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise ExportError(f"{path} can not be read: {place}: {first['msg']}") from error
    if found.format > FORMAT_VERSION:
        raise ExportError(
            f"{path} is of form {found.format}, and this agentkit-training knows {FORMAT_VERSION}; "
            "install a newer one"
        )
    _check_files(folder, found)
    return found


def _check_files(folder: Path, manifest: Manifest) -> None:
    inside = folder.resolve()
    for name, digest in manifest.files.items():
        path = folder / name
        if not path.resolve().is_relative_to(inside):
            raise ExportError(f"{folder / MANIFEST} names {name!r}, which is not in its folder")
        if not path.is_file():
            raise ExportError(f"{folder} lacks {name}, which its {MANIFEST} names; copy all of it")
        if file_digest(path) != digest:
            raise ExportError(f"{path} was changed after it was handed over; copy it again")


def _named(name: str) -> tuple[Path, BaseWeights] | None:
    """Weights that are known by name; None for a path."""
    if not name.startswith("local:") or name.endswith(".gguf"):
        return None
    try:
        from agentkit_local import weights
    except ImportError as error:
        package = "agentkit-local"
        raise MissingExtraError(name, package=package, install=f"pip install {package}") from error
    short = name.removeprefix("local:")
    path = weights.path(short)
    info = next(one for one in weights.available() if one.name == short)
    return path, BaseWeights(name=name, sha256=info.sha256, licence=info.licence)


def _licence(path: Path) -> str:
    from agentkit_training.export.architecture import open_gguf

    entry = open_gguf(path).get_field("general.license")
    return "" if entry is None else str(entry.contents())
