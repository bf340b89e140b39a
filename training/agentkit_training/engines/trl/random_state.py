"""TRL seeds every random generator of the process anew; here they are kept."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class RandomState:
    """The random generators of this process, as they were.

    Attributes:
        python: Of ``random``.
        numpy: Of numpy's global generator.
        cpu: Of torch on the CPU.
        cuda: Of torch on each GPU; empty without one.
    """

    python: tuple[Any, ...]
    numpy: tuple[Any, ...]
    cpu: Tensor
    cuda: tuple[Tensor, ...]

    @classmethod
    def now(cls) -> RandomState:
        """The state of this moment."""
        import numpy as np
        import torch

        cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
        return cls(
            python=random.getstate(),
            numpy=tuple(np.random.get_state()),  # noqa: NPY002 - the global one is what TRL seeds
            cpu=torch.get_rng_state(),
            cuda=tuple(cuda),
        )

    def restore(self) -> None:
        """Put every generator back."""
        import numpy as np
        import torch

        random.setstate(self.python)
        np.random.set_state(self.numpy)  # noqa: NPY002 - the global one is what TRL seeds
        torch.set_rng_state(self.cpu)
        if self.cuda:
            torch.cuda.set_rng_state_all(list(self.cuda))
