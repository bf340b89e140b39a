"""``ToolManager``: the only writer of a library.

Whatever changes a library goes one way here: it is decided on the newest ``LibraryState``
(``insertion`` for new composites, ``lifecycle`` for proposals, ``rollback`` for
what people say), and written with its events in one transaction of the ``repository``.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from agentkit._waiting import wait_for
from agentkit.episodes import Episode
from agentkit.errors import ModelError, StoreError, UsageError
from agentkit.evolution import lifecycle, rollback
from agentkit.evolution.checker import (
    CandidateChecker,
    ChangeJudge,
    Judgement,
    Validate,
    change_of,
    decided_before,
    source_texts,
)
from agentkit.evolution.compare import Assess
from agentkit.evolution.decide import (
    LifecyclePolicy,
    ProposalStatus,
    consent_awaited,
    recorded_reports,
    status_of,
)
from agentkit.evolution.dry_run import InsertPolicy, with_examples
from agentkit.evolution.gates import GateReport
from agentkit.evolution.insertion import Candidate, CheckResult, plan_insert
from agentkit.evolution.learning import (
    LearnReport,
    Passed,
    has_passed,
    lessons_of,
    uses_of,
)
from agentkit.evolution.ledger import WHOLE_LIBRARY, Ledger
from agentkit.evolution.lifecycle import LifecycleContext, ProposalOutcome
from agentkit.evolution.proposal import Proposal, ProposalRecord, ProposalState
from agentkit.evolution.repository import (
    LibraryRepository,
    LibraryState,
    LibraryStore,
    Transaction,
    Written,
)
from agentkit.evolution.rollback import Undoable, find_change
from agentkit.evolution.validation.checks import validate
from agentkit.evolution.validation.report import ProposedChange
from agentkit.library.changes import rollback_change
from agentkit.library.events import Author, Operation, Signer
from agentkit.library.library import Library
from agentkit.library.pins import repinned
from agentkit.library.store import LibraryChange
from agentkit.messages import JsonObject
from agentkit.tools.definition import Example, ToolDefinition
from agentkit.tools.tool import Tool, tools_by_name

T = TypeVar("T")

LESSON = "learn-"
"""How ids of changes begin that came from learning."""


class ToolManager:
    """Decides what enters a library, and writes it: the only writer (CoCoDA, Algorithm 3).

    It holds the newest snapshot, bound and linked. When another writer was faster, the candidate
    is judged again on what that writer made. Several managers may share one store, and several
    threads or tasks one manager. A commit blocks its thread for as long as the store takes.

    Args:
        store: Where the library is kept.
        tools: Code of primitives. It is bound to the stored definitions of the same names;
            ``register`` adds definitions that the store does not hold.
        policy: What is asked of a candidate.
        author: Who writes, for the history.
        lifecycle: What proposals have to go through before they serve.
        validate: All checks of a suggested change.
        change_judge: Reads the changes that need a judge; without one they wait. It must not be
            the model that suggests them.
        gates: What is asked of the numbers at each stage, such as ``EpisodeGates``; without them
            only what ``assess`` recorded counts.
        signer: Signs every event, with a key that the store does not hold.

    Raises:
        UsageError: The parameters of a tool in code differ from those in the library.

    Example:
        >>> from agentkit import open_store
        >>> from agentkit.testing import primitive_library
        >>> manager = ToolManager(open_store("memory:"), tools=primitive_library())
        >>> manager.register(primitive_library(), reason="the primitives")
        1
        >>> outcome = manager.insert('''
        ... @composite(examples=[{"arguments": {"price": 4, "count": 3, "fee": 2}, "result": 14}])
        ... def order_total(price: float, count: int, fee: float) -> float:
        ...     \"\"\"What an order costs with its fee.\"\"\"
        ...     return add(mul(price, count), fee)
        ... ''')
        >>> outcome.depth, outcome.flat_size, outcome.version
        (1, 2, 2)
    """

    def __init__(
        self,
        store: LibraryStore,
        *,
        tools: Mapping[str, Tool] | Iterable[Tool] = (),
        policy: InsertPolicy = InsertPolicy(),  # noqa: B008 - frozen
        author: str | Author = "agentkit",
        lifecycle: LifecyclePolicy = LifecyclePolicy(),  # noqa: B008 - frozen
        validate: Validate = validate,
        change_judge: ChangeJudge | None = None,
        gates: Assess | None = None,
        signer: Signer | None = None,
    ) -> None:
        self._store = store
        self._policy = lifecycle
        self._inserting = policy
        self._judge = change_judge
        self._assess = gates
        self._author = Author(kind="program", name=author) if isinstance(author, str) else author
        self._repository = LibraryRepository(
            store,
            code={name: tool for name, tool in tools_by_name(tools).items() if tool.is_bound},
            author=self._author,
            signer=signer,
        )
        checker = CandidateChecker(
            validate=validate,
            revision=self._repository.revision,
            inserting=self._inserting,
            store=store,
        )
        self._context = LifecycleContext(checker=checker, policy=lifecycle, author=self._author)

    @property
    def policy(self) -> LifecyclePolicy:
        """What proposals have to go through before they serve."""
        return self._policy

    @property
    def library(self) -> Library:
        """The newest snapshot that this manager has seen, bound and linked."""
        return self._repository.library

    @property
    def ledger(self) -> Ledger:
        """What the events of the library come to, as far as this manager has seen them."""
        return self._repository.state.ledger

    @property
    def served(self) -> Library:
        """The library that runs are to use: the newest, except for what is pinned."""
        return self._repository.served

    @property
    def change_judge(self) -> ChangeJudge | None:
        """Who reads the changes that need a judge; None for nobody."""
        return self._judge

    def revision(self, tool_name: str, digest: str) -> ToolDefinition | None:
        """A definition that a tool has or had, by its digest; None when it never had that one."""
        return self._repository.revision(tool_name, digest)

    def refresh(self) -> Library:
        """Pick up what other writers made."""
        self._repository.reload()
        return self.library

    def register(self, tools: Iterable[Tool | ToolDefinition], *, reason: str = "") -> int:
        """Add primitives that a person gives, unexamined, as ``agentkit tools add`` does.

        Names that the library holds already are left as they are.

        Returns:
            The library version that holds them.

        Raises:
            UsageError: One is a composite; these go through ``insert``.
            StaleVersionError: Other writers committed first every time.
        """
        given = [entry if isinstance(entry, Tool) else Tool(definition=entry) for entry in tools]
        composites = [tool.name for tool in given if tool.definition.is_composite]
        if composites:
            raise UsageError(f"{', '.join(composites)}: composites are added with insert()")
        self._repository.bind(given)

        def decide(state: LibraryState) -> Transaction | None:
            new = tuple(tool.definition for tool in given if tool.name not in state.library)
            return self._change("register", new, state, reason)

        self._repository.write(decide)
        return self._repository.reload().library.version

    def record(
        self,
        worked_calls: Mapping[str, Sequence[Example]],
        *,
        evidence: Sequence[str] = (),
        reason: str = "",
    ) -> int:
        """Add recorded calls to primitives as their worked calls (L4), and change nothing else.

        They are taken as they are: what a tool that touches the world answered cannot be tried.
        A call that the tool has an answer to keeps that answer. Composites above are pinned anew in
        the same change.

        Args:
            worked_calls: By name of the tool.
            evidence: Ids of the episodes that they were recorded in.
            reason: Why, for the tools' history.

        Returns:
            The library version that holds them.

        Raises:
            UsageError: A tool is a composite, whose worked calls are tried by ``insert``.
            StoreError: A recorded call is not JSON data.
            ToolNotFoundError: The library has no tool of a name given.
            LibraryError: Composites above call each other in a circle, so no pin can be moved.
            StaleVersionError: Other writers committed first every time.

        Example:
            >>> from agentkit import ToolDefinition, open_store
            >>> from agentkit.tools.definition import Example
            >>> manager = ToolManager(open_store("memory:"))
            >>> manager.register([ToolDefinition(name="weather")])
            1
            >>> manager.record({"weather": [Example(arguments={"city": "Rome"}, result="sunny")]})
            2
        """

        def decide(state: LibraryState) -> Transaction | None:
            grown = _with_recorded(state.library, worked_calls)
            return self._change("record", grown, state, reason, evidence)

        return self._repository.write(decide).version

    def learn(
        self,
        episodes: Iterable[Episode],
        *,
        passed: Passed = has_passed,
    ) -> LearnReport:
        """Add worked examples (L4) to the tools that episodes used with success.

        Retrieval reads their queries, so that tools are found by what they were asked for. All
        tools change in one commit, with the composites above pinned anew. The same episodes teach
        once: what a tool has learned stays, and what was rolled back is not learned again. A tool
        whose change is tried in shadow or canary learns when that is over, so that both arms of the
        experiment keep their texts.

        Args:
            episodes: What happened, in any order.
            passed: Which episodes went well; by default those whose verdict says so.

        Returns:
            What was added, and why other calls taught nothing.

        Raises:
            LibraryError: Composites above call each other in a circle, so no pin can be moved.
            StaleVersionError: Other writers committed first every time.

        Example:
            >>> from agentkit import Episode, ToolDefinition, open_store
            >>> from agentkit.episodes import Turn, Verdict
            >>> from agentkit.messages import AssistantMessage, ToolCall, ToolResult
            >>> manager = ToolManager(open_store("memory:"))
            >>> manager.register([ToolDefinition(name="weather")])
            1
            >>> call = ToolCall(call_id="1", name="weather", arguments={"city": "Rome"})
            >>> result = ToolResult(call_id="1", name="weather", status="ok", value="sunny")
            >>> turn = Turn(message=AssistantMessage(tool_calls=(call,)), results=(result,))
            >>> episode = Episode(
            ...     episode_id="e1", request="Umbrella in Rome?", turns=(turn,),
            ...     verdict=Verdict(passed=True),
            ... )
            >>> print(manager.learn([episode]))
            1 example learned by 1 tool from 1 call, library version 2
            >>> print(manager.learn([episode]))
            0 examples learned by 0 tools from 1 call, library version 2
        """
        every_use = uses_of(episodes, passed=passed)
        report = LearnReport(version=0)

        def decide(state: LibraryState) -> Transaction | None:
            nonlocal report
            tried = state.ledger.experiments
            uses = tuple(one for one in every_use if one.tool not in tried)
            grown, report = lessons_of(uses, state.library, self._learned_from)
            changed = repinned(state.library, grown) if grown else ()
            count = len(report.evidence)
            why = f"learned from {count} episode{'' if count == 1 else 's'}"
            return self._change("learn", changed, state, why, report.evidence)

        done = self._repository.write(decide)
        return replace(report, version=done.version)

    def insert(
        self, candidate: Candidate, *, evidence: Sequence[str] = (), reason: str = ""
    ) -> CheckResult:
        """Add a candidate, merge it into a tool that does the same, or reject it with a reason.

        Args:
            candidate: The text of one function, or a definition with a program.
            evidence: Ids of the episodes that it was made from.
            reason: Why, for the tool's history.

        Returns:
            What came of it. When it is rejected the library is as it was; so it is with the same
            candidate given again, which is merged into itself.

        Raises:
            StoreError: The store failed.
            UsageError: Called where an event loop runs; await ``insert_async`` there.
        """
        return _waited(lambda: self.insert_async(candidate, evidence=evidence, reason=reason))

    async def insert_async(
        self, candidate: Candidate, *, evidence: Sequence[str] = (), reason: str = ""
    ) -> CheckResult:
        """As ``insert``, where an event loop runs."""
        result: CheckResult

        async def decide(state: LibraryState) -> Transaction | None:
            nonlocal result
            result = await plan_insert(candidate, state.library, self._inserting)
            return self._change("insert", result.upserts, state, reason, evidence)

        done = await self._repository.write_async(decide)
        return result if result.failed else replace(result, version=done.version)

    def preview(self, candidate: Candidate) -> CheckResult:
        """What ``insert`` would do; nothing is written. The version is the next one."""
        return _waited(lambda: plan_insert(candidate, self.library, self._inserting))

    def edit(
        self, build: Callable[[Library], LibraryChange | None], *, operation: Operation = "edit"
    ) -> int:
        """Write a change that a person makes, unexamined, with the event that tells of it.

        It is for the author at the keyboard. A proposal that serves as a tool that gets other words
        is superseded. Composites above are left as they are.

        Args:
            build: Gives the change for the newest library, again when another writer was faster;
                None when there is nothing to do.
            operation: What kind of change it is, for the event.

        Returns:
            The library version afterwards.

        Raises:
            StoreError: The store failed, or other writers committed first every time.
        """

        def decide(state: LibraryState) -> Transaction | None:
            change = build(state.library)
            if change is None:
                return None
            return rollback.edit(state, change, self._author, operation)

        return self._repository.write(decide).state.library.version

    def restore(
        self, tool_name: str, *, to_version: int, reason: str = "", author: Author | None = None
    ) -> int:
        """Give a tool the definition that it had at an earlier library version.

        What became active on it since then is rolled back.

        Args:
            tool_name: The tool.
            to_version: The library version.
            reason: Why.
            author: Who goes back; by default the author of this manager.

        Returns:
            The library version afterwards.

        Raises:
            ToolNotFoundError: There never was a tool of that name.
            StoreError: There is no such version; the tool was not there then, or is as it was then
                already; or the store failed.
        """
        change_id = f"rollback-{uuid.uuid4().hex}"

        def decide(state: LibraryState) -> Transaction:
            change = rollback_change(
                self._store, tool_name, to_version=to_version, proposal_id=change_id
            )
            change = replace(change, reason=reason or change.reason)
            return rollback.restore(state, change, author or self._author, to_version=to_version)

        return self._repository.write(decide).state.library.version

    def last_change(self, which: str = "") -> Undoable | None:
        """The last change that nobody took back, whoever made it; see ``undo``.

        Args:
            which: A tool, whose last change is meant, or the id of a change as the log shows it;
                empty for the last one of the library.
        """
        return find_change(self.ledger, self._store, self._store.events(), which)

    def undo(self, change: Undoable, *, reason: str = "", author: Author | None = None) -> int:
        """Take back a change, whoever made it: ``tools add``, an import, code, an edit, mining.

        Its tools get the definitions that they had before, as a new version; those that were new
        are removed. A promotion is taken back by ``roll_back``, which its proposal needs.

        Args:
            change: See ``last_change``.
            reason: Why.
            author: Who takes it back; by default the author of this manager.

        Returns:
            The library version afterwards.

        Raises:
            UsageError: A tool was changed again since then, or others call one that would go.
            StoreError: The store failed, or other writers committed first every time.
        """
        if change.proposal_id:
            self.roll_back(change.proposal_id, reason=reason, author=author)
            return self.library.version
        undone = partial(
            rollback.undo,
            change=change,
            author=author or self._author,
            reason=reason,
            history=self._store.history,
            change_id=f"rollback-{uuid.uuid4().hex}",
        )
        return self._repository.write(undone).state.library.version

    def submit(self, proposal: Proposal) -> ProposalRecord:
        """Take in what a proposer suggests, and look at it with every check.

        A proposal that checks let pass is ``validated``, or stays ``proposed`` while somebody must
        agree; with a ``change_judge`` that one is asked at once. Any other is ``rejected``, with
        every reason. A proposal that is known already changes nothing.

        Returns:
            Where the proposal stands.

        Raises:
            UsageError: The candidate is no JSON data, or too large to be kept; or called where an
                event loop runs: await ``submit_async`` there.
            StoreError: The store failed, or other writers committed first every time.
            ModelError: The judge could not answer; the proposal is kept, and waits.
        """
        return _waited(lambda: self.submit_async(proposal))

    async def submit_async(
        self, proposal: Proposal, *, episodes: Sequence[Episode] = ()
    ) -> ProposalRecord:
        """As ``submit``, where an event loop runs.

        Args:
            proposal: What a proposer suggests.
            episodes: What happened lately, beside the episodes that the proposal names as its
                evidence: a new rule may not refuse a call that the tool took in them.
        """
        lifecycle.check_kept(proposal)

        async def decide(state: LibraryState) -> Transaction | None:
            return await lifecycle.submit(proposal, state, self._context, episodes=episodes)

        await self._repository.write_async(decide)
        return await self._ask_judge(proposal.proposal_id)

    def decided_before(self, proposal: Proposal) -> ProposalRecord | None:
        """The proposal that brought all of a suggestion, if it was taken back or refused.

        Raises:
            UsageError: As for ``submit``.
        """
        lifecycle.check_kept(proposal)
        return decided_before(self.ledger, self.revision, proposal)

    def approve(self, proposal_id: str, *, person: Author, reason: str = "") -> ProposalRecord:
        """A person agrees to an open proposal.

        Raises:
            UsageError: There is no such proposal, it is decided, or ``person`` is none.
            StoreError: The store failed, or other writers committed first every time.
        """
        return self._said(
            proposal_id,
            lambda state: lifecycle.approve(state, proposal_id, person, reason, self._context),
        )

    def reject(self, proposal_id: str, *, person: Author, reason: str) -> ProposalRecord:
        """A person says no to a proposal that is not active yet.

        Raises:
            UsageError: There is no such proposal, it is or was active, or ``person`` is none.
            StoreError: The store failed, or other writers committed first every time.
        """
        return self._said(
            proposal_id,
            lambda state: lifecycle.reject(state, proposal_id, person, reason),
        )

    def judge(self, proposal_id: str, judgement: Judgement) -> ProposalRecord:
        """Record what a judge says of an open proposal; one that says no rejects it.

        Raises:
            UsageError: There is no such proposal, it is decided, or its proposer judges it.
            StoreError: The store failed, or other writers committed first every time.
        """
        return self._said(
            proposal_id,
            lambda state: lifecycle.judge(state, proposal_id, judgement, self._context),
        )

    def assess(self, proposal_id: str, reports: Iterable[GateReport]) -> ProposalRecord:
        """Record what gates say of a proposal at its stage, for ``advance`` to act on.

        The reports of an offline comparison come in this way; those of shadow and canary are asked
        for by ``advance``, with ``gates``.

        Raises:
            UsageError: There is no such proposal, or it is not validated yet.
            StoreError: The store failed, or other writers committed first every time.
        """
        given = tuple(reports)

        def decide(state: LibraryState) -> Transaction | None:
            record = state.ledger.find(proposal_id)
            known = recorded_reports(record)
            new = [report for report in given if report not in known]
            if record.state == "proposed":
                raise UsageError(
                    f"{record.proposal_id!r} {consent_awaited(record).why}; compare it once it "
                    "is validated"
                )
            if not new or not record.is_open:
                return None
            drafts = (lifecycle.assessed(record, self._author, one) for one in new)
            return Transaction(drafts=tuple(drafts))

        return self._said(proposal_id, decide)

    def status(self, proposal_id: str) -> ProposalStatus:
        """What a proposal waits for, or why it ended, and which command comes next.

        Numbers of a shadow or canary that goes on are not looked at; ``advance`` tells them.

        Raises:
            UsageError: There is no such proposal.
        """
        return status_of(self.ledger.find(proposal_id), self.ledger, self._policy)

    def advance(self, proposal_id: str | None = None) -> tuple[ProposalOutcome, ...]:
        """Bring one open proposal, or all, on by at most one stage each.

        Args:
            proposal_id: Which; None for all that are open, oldest first.

        Returns:
            What came of each, also of those that wait.

        Raises:
            UsageError: There is no such proposal; or called where an event loop runs.
            StoreError: The store failed, or other writers committed first every time. What was
                brought on before stays.
        """
        wanted = self._open() if proposal_id is None else (proposal_id,)
        return tuple(_waited(partial(self._advance, one)) for one in wanted)

    def advance_until(self, proposal_id: str, state: ProposalState = "active") -> None:
        """Bring one proposal on, stage by stage, up to a state or as far as it goes.

        Args:
            proposal_id: Which.
            state: Where to stop.

        Raises:
            UsageError: As for ``advance``.
            StoreError: As for ``advance``.
        """
        while self.ledger.proposals[proposal_id].state != state:
            [outcome] = self.advance(proposal_id)
            if not outcome.has_moved:
                return

    async def advance_async(self, proposal_id: str | None = None) -> tuple[ProposalOutcome, ...]:
        """As ``advance``, where an event loop runs."""
        wanted = self._open() if proposal_id is None else (proposal_id,)
        return tuple([await self._advance(one) for one in wanted])

    def roll_back(
        self, which: str, *, reason: str = "", author: Author | None = None
    ) -> tuple[str, ...]:
        """Take back a proposal that is active, superseded or in canary.

        The tool gets the very definition that it had before, as a new revision. What became active
        on it later was built on that, and is taken back too. Nothing is checked first.

        Args:
            which: A proposal's id; or the name of a tool, whose canary or else whose last
                promotion is taken back.
            reason: Why.
            author: Who takes it back; by default the author of this manager.

        Returns:
            Ids of the proposals that were taken back; none when it was done already.

        Raises:
            UsageError: There is no such proposal or tool, or nothing of it to take back.
            StoreError: The store failed, or other writers committed first every time.
        """
        who, history = author or self._author, self._store.history
        done = self._repository.write(
            lambda state: rollback.roll_back(state, which, who, reason, history=history)
        )
        drafts = done.transaction.drafts if done.transaction else ()
        taken = tuple(draft.proposal_id for draft in drafts if draft.proposal_id)
        if any(done.state.ledger.proposals[one].state != "rolled_back" for one in taken):
            raise _change_id_taken(done)
        return taken

    def pin(
        self,
        version: int,
        tool_name: str = WHOLE_LIBRARY,
        *,
        reason: str = "",
        author: Author | None = None,
    ) -> Library:
        """The kill switch: runs use this version of a tool, or of the whole library.

        What is pinned is not brought on meanwhile. The library itself stays as it is.

        Returns:
            The library that runs use from now on.

        Raises:
            StoreError: There is no such version, or the store failed.
            ToolNotFoundError: The library has no such tool, then or now.
        """
        who, then = author or self._author, self._store.load(version)
        self._repository.write(
            lambda state: rollback.pin(state, version, tool_name, who, reason, then=then)
        )
        return self.served

    def unpin(
        self, tool_name: str = WHOLE_LIBRARY, *, reason: str = "", author: Author | None = None
    ) -> Library:
        """Let runs use the newest version again.

        Returns:
            The library that runs use from now on.

        Raises:
            UsageError: The tool has no pin of its own, but the whole library is pinned.
            StoreError: The store failed.
        """
        who = author or self._author
        self._repository.write(lambda state: rollback.unpin(state, tool_name, who, reason))
        return self.served

    def promote_vectors(
        self, digest: str, *, figures: JsonObject, reason: str = "", author: Author | None = None
    ) -> None:
        """Have retrieval read word vectors that learned this catalogue.

        The file stays with whoever keeps it; what is promoted is its digest.

        Args:
            digest: ``TrainedVectors.digest``.
            figures: What they gained on requests that training never saw, for the log.
            reason: Why.
            author: Who does it; the manager's author by default.

        Raises:
            StoreError: The store failed.
        """
        who = author or self._author
        self._repository.write(
            lambda state: rollback.promote_vectors(state, digest, figures, who, reason)
        )

    def take_back_vectors(self, *, reason: str = "", author: Author | None = None) -> str:
        """Have retrieval read the vectors that were promoted before, or none.

        Returns:
            The digest of those that are read now; empty for none.

        Raises:
            UsageError: None are promoted.
            StoreError: The store failed.
        """
        who = author or self._author
        self._repository.write(lambda state: rollback.take_back_vectors(state, who, reason))
        return (self.ledger.vectors or ("",))[-1]

    async def _ask_judge(self, proposal_id: str) -> ProposalRecord:
        """Let the judge read a proposal that waits for one; the record afterwards.

        Raises:
            ModelError: The judge could not answer; the proposal goes on waiting.
        """
        state = self._repository.state
        record = state.ledger.find(proposal_id)
        change = self._to_judge(record, state.library)
        if self._judge is None or change is None:
            return record
        return self.judge(record.proposal_id, await self._judge(change))

    def _to_judge(self, record: ProposalRecord, library: Library) -> ProposedChange | None:
        """What a judge is to read of an open proposal; None when nobody needs one.

        The change is that of the proposer: what others changed meanwhile is no part of it.
        """
        base = self.revision(record.tool_name, record.base) if record.base else None
        is_asked = "judge" in record.awaits and record.is_open and record.candidate is not None
        if not is_asked or (record.base and base is None):
            return None
        sources = source_texts(self._store, record.events[0].evidence)
        return change_of(base, record.current.candidate, library, sources)

    async def _advance(self, proposal_id: str) -> ProposalOutcome:
        """Bring an open proposal on by at most one stage.

        A judge that cannot answer holds up nobody else's proposal.
        """
        record = self.ledger.find(proposal_id)
        if "judge" in record.awaits and record.is_open and self._judge is not None:
            try:
                after = await self._ask_judge(record.proposal_id)
            except ModelError as error:
                why = f"the judge could not answer: {error}"
                return ProposalOutcome(record=record, before=record.state, why=why)
            waits = after.state == "proposed"
            why = consent_awaited(after).why if waits else after.last_word
            return ProposalOutcome(record=after, before=record.state, why=why)

        async def decide(state: LibraryState) -> Transaction | ProposalStatus | None:
            found = state.ledger.find(record.proposal_id)
            if found.state != record.state or not found.is_open:
                return None
            reports = self._reports(found, state.ledger)
            return await lifecycle.promote(found, state, reports, self._context)

        done = await self._repository.write_async(decide)
        after = done.state.ledger.find(record.proposal_id)
        if done.makes_version and after.state == record.state:
            raise _change_id_taken(done)
        why = after.events[-1].reason if done.instead is None else done.instead.why
        return ProposalOutcome(record=after, before=record.state, why=why)

    def _reports(self, record: ProposalRecord, ledger: Ledger) -> Sequence[GateReport]:
        """What the gates say now, and what they said before where they are not asked again."""
        recorded = {report.gate: report for report in recorded_reports(record)}
        if self._assess is not None:
            recorded |= {report.gate: report for report in self._assess(record, ledger)}
        return tuple(recorded.values())

    def _open(self) -> tuple[str, ...]:
        records = self._repository.reload().ledger.proposals.values()
        return tuple(record.proposal_id for record in records if record.is_open)

    def _said(
        self, proposal_id: str, decide: Callable[[LibraryState], Transaction | None]
    ) -> ProposalRecord:
        """Write what somebody says of a proposal; its record afterwards."""
        return self._repository.write(decide).state.ledger.find(proposal_id)

    def _change(
        self,
        operation: Operation,
        upserts: tuple[ToolDefinition, ...],
        state: LibraryState,
        reason: str,
        evidence: Sequence[str] = (),
    ) -> Transaction | None:
        """A change that no proposal made; None for no definitions."""
        if not upserts:
            return None
        change = LibraryChange(
            proposal_id=f"{operation}-{uuid.uuid4().hex}",
            upserts=upserts,
            reason=reason,
            evidence=tuple(evidence),
        )
        return Transaction.outside_proposals(operation, change, state, self._author)

    def _learned_from(self, name: str) -> frozenset[str]:
        """Ids of the episodes that a tool has learned from, taken back or not."""
        lessons = (r for r in self._store.history(name) if r.proposal_id.startswith(LESSON))
        return frozenset(episode_id for lesson in lessons for episode_id in lesson.evidence)


def _with_recorded(
    library: Library, worked_calls: Mapping[str, Sequence[Example]]
) -> tuple[ToolDefinition, ...]:
    """The definitions that change when recorded calls are added, children before parents.

    Raises:
        UsageError: A tool is a composite.
        ToolNotFoundError: The library has no tool of a name given.
        LibraryError: Composites above call each other in a circle.
    """
    changed = []
    for name, examples in worked_calls.items():
        known = library[name].definition
        if known.is_composite:
            raise UsageError(
                f"{name!r} is a composite: its worked calls are tried, by insert(), not recorded"
            )
        grown = with_examples(known, examples)
        if grown is not known:
            changed.append(grown)
    return repinned(library, changed) if changed else ()


def _change_id_taken(done: Written[Any]) -> StoreError:
    change_id = done.transaction.change.proposal_id if done.transaction else ""
    return StoreError(
        f"the store knows a change {change_id!r} that was another one, and wrote nothing; give "
        "each proposal, and each change, an id of its own"
    )


def _waited(begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of a coroutine, for code that has no event loop."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return wait_for(begin())
    raise UsageError(
        "a sync method of ToolManager was called where an event loop runs; await its async form "
        "there (insert_async, submit_async, advance_async, ...)"
    )
