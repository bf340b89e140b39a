"""``export_job``: a hand-over of the newest checkpoint of a run."""

from __future__ import annotations

from pathlib import Path

from agentkit.errors import UsageError
from agentkit_training.coevolution.checkpoint import LIBRARY, newest_checkpoint
from agentkit_training.config.jobs import CoevolveConfig
from agentkit_training.config.reading import parse_config
from agentkit_training.errors import CheckpointError, ExportError
from agentkit_training.export.adapter import AdapterPrecision
from agentkit_training.export.handover import Handover, hand_over
from agentkit_training.jobs.ending import began_as_gguf, restored_store
from agentkit_training.policy.saving import restore_weights
from agentkit_training.runs.directory import CONFIG, RunDirectory


def export_job(
    folder: Path, target: Path, *, adapter_precision: AdapterPrecision = "f32"
) -> Handover:
    """Hand over what a run of ``coevolve`` or ``grpo`` has learned so far.

    Args:
        folder: The run.
        target: Where to.
        adapter_precision: Of the adapter's numbers.

    Raises:
        UsageError: It is no such run.
        CheckpointError: It has no checkpoint yet.
        ExportError: Its weights did not begin as GGUF, which the local model needs.
    """
    run = RunDirectory(folder)
    try:
        config = parse_config(run.config, CoevolveConfig, name=str(run.path / CONFIG))
    except UsageError as error:
        raise UsageError(
            f"{folder} is no run of coevolve or grpo; a run of sft has its hand-over when it "
            f"ends: {error}"
        ) from error
    if not began_as_gguf(config.policy.weights):
        raise ExportError(
            f"{folder} trains {config.policy.weights}, which did not begin as GGUF, and the "
            "runtime's local model takes nothing else; when such a run ends, its folder has "
            "'policy', as transformers and PEFT load it, and 'library.json'"
        )
    newest = newest_checkpoint(run.checkpoints)
    if newest is None:
        raise CheckpointError(
            f"{folder} has no checkpoint yet; wait for its first one, after "
            f"{config.watch.checkpoint_every} steps (checkpoint_every of the section watch)"
        )
    policy = config.policy.load(seed=config.coevolution.seed)
    restore_weights(policy, newest)
    store = None
    if config.coevolution.changes_library:
        store = restored_store(newest / LIBRARY)
    return hand_over(
        target,
        base=config.policy.weights,
        policy=policy if config.has_own_weights else None,
        store=store,
        adapter_precision=adapter_precision,
    )
