"""What a run leaves behind: the trained policy, the evolved library, the report."""

from __future__ import annotations

from pathlib import Path

from agentkit import open_store
from agentkit.evolution.repository import LibraryStore
from agentkit.interop.export import open_artifact, read_artifact, restore_artifact
from agentkit.library import Library
from agentkit.library.store import Store
from agentkit_training.export.handover import (
    hand_over,
)
from agentkit_training.export.manifest import export_library
from agentkit_training.policy.lora import save_adapter
from agentkit_training.policy.policy import Policy
from agentkit_training.policy.saving import save_policy
from agentkit_training.report.report import run_html
from agentkit_training.runs.directory import RunDirectory


def ended(
    run: RunDirectory, *, policy: Policy | None, base: str, store: LibraryStore | None
) -> None:
    """Write what the runtime takes, and the report.

    Weights that began as GGUF are handed over as the local model loads them (``handover/``). Of
    others the runtime's local model can not take adapters, so that they are saved as transformers
    load them (``policy/``), beside the library's artifact.

    Args:
        run: The run.
        policy: What was trained; None where it stayed as it was.
        base: The weights that training began with, as the configuration names them.
        store: What the Tool Manager wrote to; None where only weights were trained.
    """
    if began_as_gguf(base):
        if policy is not None or store is not None:
            hand_over(run.path / HANDOVER, base=base, policy=policy, store=store)
    else:
        if policy is not None:
            save = save_adapter if policy.is_adapted else save_policy
            save(policy, run.path / POLICY)
        if store is not None:
            export_library(store, run.path / LIBRARY)
    (run.path / REPORT).write_text(run_html(run), encoding="utf-8")


HANDOVER, POLICY, LIBRARY, REPORT = "handover", "policy", "library.json", "report.html"


def began_as_gguf(base: str) -> bool:
    """Whether the runtime's local model loads what is trained on these weights.

    Args:
        base: As the configuration names them.
    """
    return base.startswith("local:") or base.endswith(".gguf")


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
