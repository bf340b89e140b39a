"""``iterate``: rounds of ToolACE-R until they bring nothing more (section 3.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentkit.evaluation import Benchmark
from agentkit.library import Library
from agentkit_training.fine_tuning.rehearsing import rehearsed
from agentkit_training.fine_tuning.solutions import answers_of
from agentkit_training.policy.policy import Policy
from agentkit_training.toolace.keeping import (
    KeptRounds,
    facts_of,
    put_back,
    trainable_weights,
    tuning_of,
)
from agentkit_training.toolace.records import RoundRecord, StopReason, ToolAceReport
from agentkit_training.toolace.rounds import Listener, Progress, Rounds
from agentkit_training.toolace.settings import ToolAceSettings

if TYPE_CHECKING:
    import torch


def ignore(_: Progress) -> None:
    """Listen to nothing."""


async def iterate(
    policy: Policy,
    train: Benchmark,
    validation: Benchmark,
    settings: ToolAceSettings = ToolAceSettings(),  # noqa: B008 - immutable
    *,
    library: Library | None = None,
    folder: Path | None = None,
    listen: Listener = ignore,
) -> ToolAceReport:
    """Train a policy in rounds: each one selects what the policy of that moment can learn from.

    The paper goes on until the improvement is marginal. We end a run whose last round brought less
    than ``settings.least_gain``, and leave the policy with the weights of the best round; the
    paper does not say what becomes of a round that made it worse.

    Args:
        policy: What learns: all its weights, or its LoRA adapters where only these are trainable.
        train: The tasks it learns from.
        validation: The tasks that say when to stop; they share no question and no function with
            ``train``, or the accuracy says nothing.
        settings: How.
        library: What the tools are called and described as; None for the benchmarks' own texts.
        folder: Where each round is kept; a run that is found there goes on after its last whole
            round. None keeps none.
        listen: Told of progress.

    Raises:
        DivergedError: The loss is not a number.
        CheckpointError: A round can not be kept, or the folder holds another run.
        PolicyError: No weight is trainable.
    """
    known = answers_of(train, no_call=settings.no_call)
    gold = await rehearsed(known, train, library=library, settings=settings.evaluation)
    rounds = Rounds(
        policy=policy,
        train=train,
        validation=validation,
        settings=settings,
        library=library,
        gold=gold,
        listen=listen,
    )
    run = _Run(rounds=rounds, kept=None if folder is None else KeptRounds(folder))
    await run.begin()
    while (stopped := run.stopped()) is None:
        await run.one()
    return run.report(stopped)


@dataclass(kw_only=True)
class _Run:
    """The state of one start of a run."""

    rounds: Rounds
    kept: KeptRounds | None
    base: float = 0.0
    done: tuple[RoundRecord, ...] = ()
    best: int = 0
    best_weights: dict[str, torch.Tensor] | None = None

    async def begin(self) -> None:
        """Take up a kept run, or begin one."""
        with_all = self.rounds
        benchmarks = (with_all.train, with_all.validation)
        facts = facts_of(with_all.policy, with_all.settings, benchmarks, with_all.library)
        base = None if self.kept is None else self.kept.begun(facts)
        self.best_weights = trainable_weights(with_all.policy)
        if self.kept is not None and base is not None:
            self.base = base
            for record in self.kept.rounds():
                put_back(with_all.policy, self.kept.weights(record.number))
                self._add(record)
            return
        self.base = await with_all.accuracy(0)
        if self.kept is not None:
            self.kept.begin(replace(facts, base_accuracy=self.base))

    async def one(self) -> None:
        """Run the next round, and keep it."""
        number = len(self.done) + 1
        before = self.done[-1].accuracy_after if self.done else self.base
        folder = None if self.kept is None else tuning_of(self.kept.of(number))
        record = await self.rounds.run(number, before, folder)
        if self.kept is not None:
            self.kept.keep(record, trainable_weights(self.rounds.policy))
        self._add(record)
        self.rounds.listen(Progress(round=number, phase="done", record=record))

    def stopped(self) -> StopReason | None:
        """Why there is no further round; None when there is one."""
        last = self.done[-1] if self.done else None
        if last is not None and not last.examples:
            return "nothing_selected"
        if last is not None and last.gain < self.rounds.settings.least_gain:
            return "marginal_gain"
        return "all_rounds" if len(self.done) >= self.rounds.settings.rounds else None

    def report(self, stopped: StopReason) -> ToolAceReport:
        """The end: the policy gets the weights of the best round."""
        if self.best_weights is not None and self.best != len(self.done):
            put_back(self.rounds.policy, self.best_weights)
        return ToolAceReport(
            base_accuracy=self.base, rounds=self.done, best=self.best, stopped=stopped
        )

    def _add(self, record: RoundRecord) -> None:
        self.done = (*self.done, record)
        reached = max([self.base, *(one.accuracy_after for one in self.done[:-1])])
        if record.examples and record.accuracy_after > reached:
            self.best = record.number
            self.best_weights = trainable_weights(self.rounds.policy)
