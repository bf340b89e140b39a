"""``VllmWriter``: rollouts written by vLLM, driven through TRL, beside the weights that learn.

TRL's ``VLLMGeneration`` makes vLLM in each process, hands over weights (adapters merged) and asks
it. The runtime's agent asks turn by turn, each process for itself and as often as its own runs
need; so nothing here makes processes wait for each other. That rules out two things that TRL
offers: vLLM spreads over one device only, and it does not sleep while the weights learn, since TRL
wakes it up with a gathering of all processes.

It was never run with vLLM itself. What calls it, and what TRL does with it, is tested with a double
of vLLM's own names.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agentkit.errors import MissingExtraError, UsageError
from agentkit_training.generation.decoding import Completion, Prompt
from agentkit_training.policy.policy import Policy
from agentkit_training.rollout.policy_model import PolicyWriter

if TYPE_CHECKING:
    import torch

Correction: TypeAlias = Literal[
    "none", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"
]
"""How tokens are weighed that vLLM and the trainer find differently likely, named as in TRL."""

_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""What TRL sets for vLLM, and leaves."""

_NOTHING = Completion(ids=(), logprobs=(), is_ended=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class VllmSettings:
    """What vLLM takes of a device, and what is made of its log-probabilities.

    vLLM computes with other kernels, so that a token is a little more or less likely to it than to
    the trainer. The loss of each token is multiplied with the trainer's probability over vLLM's,
    cut off (truncated importance sampling), as TRL does it. That is for an objective whose ratio is
    taken against the weights of now; one that takes it against the sampled log-probabilities has
    the same factor in its ratio, bounded by the clip, and nothing is multiplied.

    Attributes:
        weights: The folder of the model that vLLM is made from; empty for the one that the policy
            was loaded from.
        memory_share: The part of the device's memory that vLLM takes.
        at_once: Most answers written at the same time.
        window: Longest prompt and answer together; None as the model has it.
        correction: How differently likely tokens are weighed.
        cap: Above which a weight is cut off, or set to 0 with the masks.
    """

    weights: str = ""
    memory_share: float = 0.3
    at_once: int = 64
    window: int | None = None
    correction: Correction = "token_truncate"
    cap: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.memory_share < 1 or self.at_once < 1 or self.cap < 1:
            raise UsageError(
                f"memory_share is {self.memory_share}, at_once {self.at_once} and cap {self.cap}; "
                "give a share between 0 and 1, and at least 1 of the others"
            )


@dataclass(kw_only=True)
class VllmWriter:
    """Writes with vLLM while an engine trains, and with the policy itself at other times.

    Give the same one to ``PolicyModel`` and to ``TrlEngine``. Which tokens vLLM draws does not
    follow from the seeds of prompts: a run that goes on from a checkpoint learns from other
    rollouts than an unbroken one.

    Attributes:
        policy: What learns. It is whole on each process; where vLLM writes it may be on the CPU.
        settings: How vLLM is made.
    """

    policy: Policy
    settings: VllmSettings = field(default_factory=VllmSettings)
    _generation: Any = field(init=False, default=None)
    _frozen: list[tuple[torch.Tensor, torch.Tensor]] | None = field(init=False, default=None)

    async def write(self, prompts: Sequence[Prompt]) -> Sequence[Completion]:
        """An answer to each prompt, in order.

        Prompts that are sampled alike are written together. vLLM is asked on this thread: it was
        made on it, and a new one would begin on another device.
        """
        if self._generation is None:
            return await PolicyWriter(policy=self.policy).write(prompts)
        found = [_NOTHING] * len(prompts)
        for places in _sampled_alike(prompts):
            rows = [prompts[place] for place in places]
            for place, completion in zip(places, self._written(rows), strict=True):
                found[place] = completion
        return found

    def take_over(self) -> None:
        """Hand vLLM the weights that were learned; every process calls it."""
        import torch

        if self._frozen is None:
            self._frozen = _under_adapters(self._generation.model)
        self._generation.sync_weights()
        with torch.no_grad():
            for weight, kept in self._frozen:
                weight.copy_(kept)

    @contextmanager
    def beside(self, trainer: Any) -> Iterator[None]:
        """Let vLLM write for as long as a trainer of TRL's trains.

        Args:
            trainer: Whose module learns; it is not prepared yet. It is told that vLLM writes, so
                that it corrects what its configuration says.

        Raises:
            MissingExtraError: vLLM is not installed.
            UsageError: It can not be told which model to load.
        """
        module = trainer.model
        had = vars(module).get("name_or_path")
        variables = {name: os.environ.get(name) for name in _VARIABLES}
        module.name_or_path = self._folder()
        try:
            self._generation = _generation(trainer, self.settings, self.policy)
            trainer.use_vllm, trainer.vllm_generation = True, self._generation
            yield
        finally:
            self._generation = self._frozen = None
            vars(module).pop("name_or_path", None)
            if had is not None:
                module.name_or_path = had
            for name, value in variables.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value

    def _folder(self) -> str:
        folder = self.settings.weights or self.policy.model.name_or_path
        if not folder:
            raise UsageError(
                f"vLLM loads a model from a folder, and {self.policy.name} was made without one; "
                "write one with save_policy and name it in VllmSettings(weights=…)"
            )
        return str(folder)

    def _written(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Answers to prompts that are sampled alike, each cut at its own length."""
        ids = [list(prompt.ids) for prompt in prompts]
        longest = max(prompt.max_tokens for prompt in prompts)
        asked = self._generation
        asked.temperature, asked.top_p = prompts[0].temperature, prompts[0].top_p
        asked.max_completion_length = longest
        _, drawn, logprobs, _ = asked.generate(prompts=ids, images=None, num_generations=1)
        return [
            _completion(prompt, tokens, told, self.policy.end_ids)
            for prompt, tokens, told in zip(prompts, drawn, logprobs, strict=True)
        ]


def _generation(trainer: Any, settings: VllmSettings, policy: Policy) -> Any:
    """TRL's own hold on vLLM.

    It is not made by the trainer, which lets vLLM answer only as many rows at once as it reads.
    """
    from trl.generation.vllm_generation import VLLMGeneration
    from trl.import_utils import is_vllm_available

    if not is_vllm_available():
        raise MissingExtraError(
            "vLLM as the writer of rollouts",
            package="vllm",
            install="pip install 'agentkit-training[vllm]'",
        )
    known = inspect.signature(VLLMGeneration).parameters
    older = {"is_fsdp_enabled": trainer.is_fsdp_enabled} if "is_fsdp_enabled" in known else {}
    return VLLMGeneration(
        model=trainer.model,
        accelerator=trainer.accelerator,
        processing_class=policy.tokenizer,
        mode="colocate",
        gpu_memory_utilization=settings.memory_share,
        max_model_length=settings.window,
        max_num_seqs=settings.at_once,
        logprobs=0,
        generation_kwargs={"stop_token_ids": sorted(policy.end_ids)},
        **older,
    )


def _under_adapters(module: Any) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The weights that adapters sit on, each with a copy on the CPU.

    TRL adds the adapters to them and takes these off again, which rounds: they would drift.
    """
    found = []
    for name, one in module.named_parameters():
        if ".base_layer." in name:
            here = one.to_local() if hasattr(one, "to_local") else one
            found.append((here.detach(), here.detach().to("cpu", copy=True)))
    return found


def _sampled_alike(prompts: Sequence[Prompt]) -> list[list[int]]:
    """The places of prompts that differ in length and seed alone; those without an answer not."""
    alike: dict[tuple[float, float], list[int]] = {}
    for place, prompt in enumerate(prompts):
        if prompt.max_tokens:
            alike.setdefault((prompt.temperature, prompt.top_p), []).append(place)
    return list(alike.values())


def _completion(
    prompt: Prompt, tokens: Sequence[int], told: Any, end_ids: frozenset[int]
) -> Completion:
    """What was drawn, as far as the prompt wanted it.

    A token whose log-probability vLLM can not tell bears 0, as one that was certain.
    """
    ids = tuple(tokens[: prompt.max_tokens])
    logprobs = tuple(0.0 if first is None else float(first) for first, *_ in told[: len(ids)])
    return Completion(ids=ids, logprobs=logprobs, is_ended=bool(ids) and ids[-1] in end_ids)
