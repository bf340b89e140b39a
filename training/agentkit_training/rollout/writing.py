"""``Writer``: who writes the answers. A policy of this process, or a server far away.

What a rollout reads and writes is tokens either way, so that it can be trained on wherever the
weights are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from agentkit_training.generation.decoding import Completion, Prompt, complete
from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class Speaker(Protocol):
    """What must be known of a model to write prompts for it and to read its answers.

    A ``Policy`` is one; so is anything that knows the tokenizer of weights that are elsewhere.
    """

    @property
    def name(self) -> str:
        """For records."""
        ...

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """Its tokenizer, with a chat template."""
        ...

    @property
    def end_ids(self) -> frozenset[int]:
        """The tokens that end an answer."""
        ...

    @property
    def context_tokens(self) -> int:
        """The longest prompt and answer together, in tokens."""
        ...


class Writer(Protocol):
    """Writes answers, token by token."""

    async def write(self, prompts: Sequence[Prompt]) -> Sequence[Completion]:
        """An answer to each prompt, in order."""
        ...


@dataclass(frozen=True, kw_only=True)
class PolicyWriter:
    """Writes with the weights of this process, in one thread of its own.

    One, since the C library keeps memory that was freed for the thread that freed it: with batches
    in whichever thread is idle, each of these would keep the room of the largest batch.

    Attributes:
        policy: The weights.
    """

    policy: Policy
    _thread: ThreadPoolExecutor = field(
        init=False, repr=False, compare=False, default_factory=lambda: ThreadPoolExecutor(1)
    )

    async def write(self, prompts: Sequence[Prompt]) -> Sequence[Completion]:
        """See ``generation.decoding.complete``."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, complete, self.policy, prompts)
