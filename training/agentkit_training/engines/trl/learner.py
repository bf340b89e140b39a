"""``Learner``: the module that TRL trains, and how what it learned comes into the policy.

In one process, or with whole weights on each, it is the policy's own module. Where weights are
sharded it is a copy that lies in shares on the processes. The policy stays whole on each of them:
weights for reading alone, without gradients and without a state of the optimiser. It writes the
rollouts, is measured, saved and exported as ever, and takes over what was learned after each step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class Learner:
    """What TRL trains: the policy's own module.

    Attributes:
        policy: What learns, whole on this process.
        module: What TRL is given.
    """

    policy: Policy
    module: Any

    @property
    def is_shared(self) -> bool:
        """Whether weights lie in shares on several processes."""
        return False

    @property
    def keeps_masters(self) -> bool:
        """Whether the shares of bfloat16 weights are kept in float32, or DeepSpeed keeps those.

        Small steps are not rounded away then. Of whole weights the optimiser sees to that itself
        (``MasterAdam``), and adapters are in float32.
        """
        import torch

        is_bf16 = any(one.dtype == torch.bfloat16 for one in self.policy.trainable)
        return self.is_shared and is_bf16

    @property
    def steps_itself(self) -> bool:
        """Whether a step is taken in the backward pass, where TRL's callback comes too late."""
        return False

    @property
    def trainable(self) -> list[torch.nn.Parameter]:
        """The parameters that the optimiser may change, in the policy's order."""
        return [one for one in self.module.parameters() if one.requires_grad]

    def begin(self, trainer: Any, look: Callable[[], bool]) -> None:
        """Called when the module is as TRL trains it.

        Args:
            trainer: TRL's.
            look: Where the learner ``steps_itself``: looks at the gradient before each step, and
                says whether it is to be taken.
        """

    def gradient_norm(self) -> float:
        """Of all gradients together, of all processes; 0 without any."""
        return total_norm(one.grad for one in self.trainable if one.grad is not None)

    def weight_norm(self) -> float:
        """Of all weights that learn; no number says that one of them is none."""
        return total_norm(self.trainable)

    def hand_over(self) -> None:
        """Let the policy hold what was learned; every process calls it."""


@dataclass(frozen=True, kw_only=True)
class ShardedLearner(Learner):
    """A copy of the policy's module, whose weights lie in shares on the processes."""

    @property
    def is_shared(self) -> bool:
        """They do, once TRL has prepared the module."""
        return True

    def hand_over(self) -> None:
        """Gather what was learned, one weight after another, and write it into the policy.

        Weights that do not learn are not gathered: with adapters, little is.
        """
        import torch

        whole = dict(self.policy.model.named_parameters())
        with torch.no_grad():
            for name, share in self.module.named_parameters():
                if share.requires_grad:
                    with self.gathered(share) as weight:
                        whole[name].copy_(weight)

    @contextmanager
    def gathered(self, share: Any) -> Iterator[torch.Tensor]:
        """A weight as a whole, for as long as it is read; every process asks for it."""
        from torch.distributed.tensor import DTensor

        yield share.full_tensor() if isinstance(share, DTensor) else share


def total_norm(tensors: Iterable[Any]) -> float:
    """Of all numbers together, those on other processes included; 0 without any."""
    import torch
    from torch.distributed.tensor import DTensor

    norms = []
    for one in tensors:
        norm = torch.linalg.vector_norm(one.detach().float())
        norms.append(norm.full_tensor() if isinstance(norm, DTensor) else norm)
    return float(torch.linalg.vector_norm(torch.stack(norms))) if norms else 0.0
