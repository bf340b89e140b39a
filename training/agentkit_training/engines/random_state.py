"""What an update draws, such as dropout, follows from seed and step, and disturbs nobody else.

So a run that goes on from a checkpoint draws what an unbroken one does. TRL seeds every random
generator of the process anew; here they are kept apart from it.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, device


@dataclass(frozen=True, kw_only=True, slots=True)
class RandomState:
    """The random generators of this process, as they were.

    Attributes:
        python: Of ``random``.
        numpy: Of numpy's global generator.
        cpu: Of torch on the CPU.
        cuda: Of torch on the GPU of the policy; None where that is on the CPU.
        place: Where the policy is.
    """

    python: tuple[Any, ...]
    numpy: tuple[Any, ...]
    cpu: Tensor
    cuda: Tensor | None
    place: device

    @classmethod
    def now(cls, place: device) -> RandomState:
        """The state of this moment.

        Args:
            place: Where the policy is.
        """
        import numpy as np
        import torch

        return cls(
            python=random.getstate(),
            numpy=tuple(np.random.get_state()),  # noqa: NPY002 - the global one is what TRL seeds
            cpu=torch.get_rng_state(),
            cuda=torch.cuda.get_rng_state(place) if place.type == "cuda" else None,
            place=place,
        )

    def restore(self) -> None:
        """Put every generator back."""
        import numpy as np
        import torch

        random.setstate(self.python)
        np.random.set_state(self.numpy)  # noqa: NPY002 - the global one is what TRL seeds
        torch.set_rng_state(self.cpu)
        if self.cuda is not None:
            torch.cuda.set_rng_state(self.cuda, self.place)


@contextmanager
def drawing(place: device, *numbers: int) -> Iterator[None]:
    """Let torch draw by a few numbers together, then let every generator go on as it was.

    Args:
        place: Where the policy is.
        numbers: Such as seed and step.
    """
    before = RandomState.now(place)
    seed_torch(*numbers)
    try:
        yield
    finally:
        before.restore()


def seed_torch(*numbers: int) -> None:
    """Seed torch on every device with a few numbers together, such as seed, step and process."""
    import torch

    text = ",".join(map(str, numbers)).encode()
    torch.manual_seed(int.from_bytes(hashlib.sha256(text).digest()[:7], "big"))
