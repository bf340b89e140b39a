"""``ShardedAdam``: an AdamW whose state lies in shares on the processes, and is saved whole.

A checkpoint is the one that a single process writes: it can be gone on from with any number of
processes, sharded or not.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentkit_training.engines.adam import KeptAdam
from agentkit_training.files import whole_file

if TYPE_CHECKING:
    import torch


@dataclass(kw_only=True)
class ShardedAdam(KeptAdam):
    """See ``KeptAdam``. Rank 0 saves, and the other processes give their shares meanwhile.

    Attributes:
        keeps_masters: Whether weights are kept more exactly than the policy holds them; they are
            saved beside the state then.
    """

    keeps_masters: bool = False

    def kind(self, parameters: Sequence[torch.nn.Parameter]) -> type[torch.optim.AdamW]:
        """AdamW itself: shares are float32 already, or DeepSpeed keeps masters of its own."""
        import torch

        return torch.optim.AdamW

    def save(self, folder: Path) -> None:
        """Gather the state, one tensor after another, and write it; the others ``give`` theirs.

        Raises:
            CheckpointError: It can not be written, as on a full disk.
        """
        if self._restored is None:
            super().save(folder)
        else:  # nothing was trained since
            with whole_file(folder / self.file) as draft:
                shutil.copyfile(self._restored, draft)

    def give(self) -> None:
        """Take part in the gathering of ``save``."""
        if self._restored is None and self._adam is not None:
            self.whole(self._adam)

    def fill(self, adam: torch.optim.Optimizer) -> None:
        """See ``KeptAdam.fill``; learning rates stay those that a schedule has set already.

        Raises:
            CheckpointError: A restored state is of another model.
        """
        rates = [(group["lr"], group["initial_lr"]) for group in adam.param_groups]
        super().fill(adam)
        for group, (now, first) in zip(adam.param_groups, rates, strict=True):
            group.update(lr=now, initial_lr=first)

    def whole(self, adam: torch.optim.Optimizer) -> dict[str, Any]:
        """The state of all weights, on the CPU of rank 0; every process asks for it."""
        state = adam.state_dict()
        found = {
            number: {name: _whole(value) for name, value in of_weight.items()}
            for number, of_weight in state["state"].items()
        }
        masters = [_whole(one.detach()) for one in _weights(adam)] if self.keeps_masters else []
        return {"state": found, "param_groups": state["param_groups"], "masters": masters}

    def load(self, adam: torch.optim.Optimizer, whole: dict[str, Any]) -> None:
        """Keep this process's share of a whole state; every process does so.

        Raises:
            ValueError: It is of other weights.
        """
        import torch

        weights = _weights(adam)
        shares = {
            number: {name: _share(value, weights[number]) for name, value in of_weight.items()}
            for number, of_weight in whole["state"].items()
            if number < len(weights)  # the optimiser itself says that there are too many
        }
        adam.load_state_dict({"state": shares, "param_groups": whole["param_groups"]})
        if self.keeps_masters:
            with torch.no_grad():
                for weight, master in zip(weights, whole.get("masters", ()), strict=False):
                    weight.copy_(_share(master, weight))


def _weights(adam: torch.optim.Optimizer) -> list[Any]:
    return [one for group in adam.param_groups for one in group["params"]]


def is_first() -> bool:
    """Whether this process is the one that writes."""
    import torch.distributed as dist

    return bool(dist.get_rank() == 0)


def _whole(value: Any) -> Any:
    from torch.distributed.tensor import DTensor

    if not isinstance(value, DTensor):
        return value
    gathered = value.full_tensor()
    return gathered.cpu() if is_first() else None


def _share(value: Any, weight: Any) -> Any:
    """What this process holds of a whole tensor of the state, as it holds of the weight."""
    from torch.distributed.tensor import DTensor, distribute_tensor

    if not isinstance(weight, DTensor) or not value.dim():
        return value
    if value.shape != weight.shape:
        raise ValueError(
            f"a weight is of shape {tuple(weight.shape)}, and {tuple(value.shape)} there"
        )
    return distribute_tensor(value.to(weight.device), weight.device_mesh, weight.placements)
