"""``Executing``: how calls are run, whoever drives the loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from weakref import WeakKeyDictionary

from agentkit.agent.contracts import ContractChecker
from agentkit.agent.episode_queue import EpisodeQueue
from agentkit.agent.executor import ExecutionPolicy, Executor
from agentkit.agent.recording import Start
from agentkit.agent.selection import Offer
from agentkit.agent.traced_executor import TracedExecutor
from agentkit.agent.types import Approver, Limits
from agentkit.library.library import Library
from agentkit.tools.validation import ArgumentValidator
from agentkit.tracing.tracing import Tracing


@dataclass(frozen=True, kw_only=True, slots=True)
class Executing:
    """What all runs of an agent share of how their calls are run.

    Attributes:
        policy: Timeouts and retries.
        limits: Bounds on one run.
        approve: Asks a person; None where nobody can be asked.
        contracts: Checks learned rules, and pre- and postconditions if that is wanted.
        tracing: Is told of calls and checks; None for nobody.
        queue: Takes the episodes; while it can not, tools that may write are not run.
    """

    policy: ExecutionPolicy
    limits: Limits
    approve: Approver | None
    contracts: ContractChecker
    tracing: Tracing | None
    queue: EpisodeQueue | None = None
    _validators: WeakKeyDictionary[Library, dict[str, ArgumentValidator]] = field(
        init=False, default_factory=WeakKeyDictionary
    )

    def executor(self, start: Start, offer: Offer) -> Executor:
        """What runs the calls of one run.

        Args:
            start: Where the run begins.
            offer: The tools that its model may call.
        """
        make = Executor if self.tracing is None else partial(TracedExecutor, tracing=self.tracing)
        return make(
            library=start.library,
            offer=offer,
            policy=self.policy,
            limits=self.limits,
            approve=self.approve,
            validators=self._validators.setdefault(start.library, {}),
            emit=start.emit,
            contracts=self.contracts,
            said=start.history,
            queue=self.queue,
        )
