"""What a run is laid out for: machines and devices, and what verl must know beside it."""

from __future__ import annotations

from dataclasses import dataclass

from agentkit.errors import UsageError
from agentkit_training.ranges import check_least


@dataclass(frozen=True, kw_only=True)
class HardwareSection:
    """What ``--dry-run`` and ``plan`` reckon with, where nothing else is known.

    ``torchrun`` says how many processes there are when a run begins; verl is told these numbers.

    Attributes:
        machines: How many.
        devices: Of each machine, and processes on it.
        device_gib: Memory of each device; None when it is not known.
    """

    machines: int = 1
    devices: int = 1
    device_gib: float | None = None

    def __post_init__(self) -> None:
        check_least(self, "machines", "devices", section="hardware")
        if self.device_gib is not None and self.device_gib <= 0:
            raise UsageError(f"hardware.device_gib is {self.device_gib:g}; give more than 0")

    @property
    def processes(self) -> int:
        """How many processes train: one for each device."""
        return self.machines * self.devices


@dataclass(frozen=True, kw_only=True)
class VerlSection:
    """What verl must know that no engine of ours asks for.

    Attributes:
        prompt_tokens: Longest prompt. A rollout with a longer one is left out.
        response_tokens: Longest response: all answers, and what tools said between them.
        tensor_parallel: Devices over which a server of rollouts lays the weights.
        library: URL of a store that every machine reaches, whose newest version serves; empty for
            the tasks' own texts.
        keeps_episodes: Whether workers put episodes of training tasks into that store, to be
            learned from.
    """

    prompt_tokens: int = 2048
    response_tokens: int = 1024
    tensor_parallel: int = 1
    library: str = ""
    keeps_episodes: bool = False

    def __post_init__(self) -> None:
        check_least(self, "prompt_tokens", "response_tokens", "tensor_parallel", section="verl")
        if self.keeps_episodes and not self.library:
            raise UsageError("verl.keeps_episodes is on and verl.library names no store; name one")
