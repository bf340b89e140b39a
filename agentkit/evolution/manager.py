"""``ToolManager``: the only writer of a library."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from agentkit.composites.problems import CompositeLimits
from agentkit.episodes import Episode
from agentkit.errors import StaleVersionError, UsageError
from agentkit.evolution.checker import ChangeJudge, Judgement, Validate
from agentkit.evolution.compare import Assess
from agentkit.evolution.decide import LifecyclePolicy, Standing
from agentkit.evolution.duplicates import Judge
from agentkit.evolution.gates import GateReport
from agentkit.evolution.insert_outcomes import (
    Addition,
    InsertOutcome,
    InsertPolicy,
    Merger,
    Rejected,
    told,
)
from agentkit.evolution.insertion import Candidate, Procedure, decide
from agentkit.evolution.learning import LearningRules, LearnReport, Teaching, lessons_of
from agentkit.evolution.ledger import EXPERIMENTS, WHOLE_LIBRARY, Ledger
from agentkit.evolution.lifecycle import Advance, Lifecycle, Revalidation
from agentkit.evolution.loops import from_sync
from agentkit.evolution.proposal import ProposalRecord, ProposerRecord
from agentkit.evolution.proposer import Suggestion
from agentkit.evolution.provenance import LESSON, Provenance, lesson
from agentkit.evolution.recorded import check_recorded, with_recorded
from agentkit.evolution.repository import Journal, LibraryStore, Position, Step
from agentkit.evolution.rollback import Undoable, edit_step, find_change, restoring_step, undo_step
from agentkit.evolution.usage import Passed, has_passed, uses_of
from agentkit.evolution.validation.validate import validate
from agentkit.library.changes import now
from agentkit.library.event_chain import Operation, Signer
from agentkit.library.events import Author
from agentkit.library.library import Library
from agentkit.library.pins import repinned
from agentkit.library.rollback import rollback_change
from agentkit.library.store import LibraryChange
from agentkit.tools.definition import Example, ToolDefinition
from agentkit.tools.tool import Tool, tools_by_name


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
        limits: Caps on the text of composites and on their runs.
        author: Who writes, for the history.
        judge: Decides on duplicates whose words differ, such as ``ModelJudge``; without one both
            are kept.
        lifecycle: What proposals have to go through before they serve.
        validate: All checks of a suggested change.
        change_judge: Reads the changes that need a judge; without one they wait. It must not be
            the model that suggests them.
        gates: What is asked of the numbers at each stage, such as ``EpisodeGates``; without them
            only what ``assess`` recorded counts.
        signer: Signs every event, with a key that the store does not hold.
        clock: The time of events, as ISO 8601 in UTC.

    Raises:
        UsageError: The parameters of a tool in code differ from those in the library.

    Example:
        >>> from agentkit import open_store
        >>> from agentkit.testing import primitive_library
        >>> manager = ToolManager(open_store("memory:"), tools=primitive_library())
        >>> manager.register(primitive_library(), reason="the warm library")
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
        limits: CompositeLimits = CompositeLimits(),  # noqa: B008 - frozen
        author: str | Author = "agentkit",
        judge: Judge | None = None,
        lifecycle: LifecyclePolicy = LifecyclePolicy(),  # noqa: B008 - frozen
        validate: Validate = validate,
        change_judge: ChangeJudge | None = None,
        gates: Assess | None = None,
        signer: Signer | None = None,
        clock: Callable[[], str] = now,
    ) -> None:
        self._store = store
        self._procedure = Procedure(policy=policy, limits=limits, judge=judge)
        self._author = Author(kind="program", name=author) if isinstance(author, str) else author
        self._journal = Journal(
            store,
            code={name: tool for name, tool in tools_by_name(tools).items() if tool.is_bound},
            author=self._author,
            limits=limits,
            signer=signer,
            clock=clock,
        )
        self._lifecycle = Lifecycle(
            self._journal,
            policy=lifecycle,
            validate=validate,
            judge=change_judge,
            assess=gates,
            trying=policy,
            limits=limits,
        )

    @property
    def library(self) -> Library:
        """The newest snapshot that this manager has seen, bound and linked."""
        return self._journal.library

    @property
    def ledger(self) -> Ledger:
        """What the events of the library come to, as far as this manager has seen them."""
        return self._journal.position.ledger

    @property
    def served(self) -> Library:
        """The library that runs are to use: the newest, but for what is pinned."""
        return self._journal.served

    def revision(self, tool_name: str, digest: str) -> ToolDefinition | None:
        """A definition that a tool has or had, by its digest; None when it never had that one."""
        return self._journal.revision(tool_name, digest)

    def refresh(self) -> Library:
        """Take up what other writers made."""
        self._journal.reload()
        return self.library

    def register(
        self,
        tools: Iterable[Tool | ToolDefinition],
        *,
        reason: str = "",
        proposal_id: str | None = None,
    ) -> int:
        """Add primitives that a person gives, unexamined, as ``agentkit tools add`` does.

        Names that the library holds already are left as they are.

        Returns:
            The library version that holds them.

        Raises:
            UsageError: One is a composite; these go through ``insert``.
            StaleVersionError: Other writers were faster every time.
        """
        given = [entry if isinstance(entry, Tool) else Tool(definition=entry) for entry in tools]
        composites = [tool.name for tool in given if tool.definition.is_composite]
        if composites:
            raise UsageError(f"{', '.join(composites)}: composites are added with insert()")
        self._journal.know(given)
        return self._write(
            Provenance.of(proposal_id, "register", reason=reason),
            lambda held: tuple(tool.definition for tool in given if tool.name not in held),
        )

    def record(
        self,
        worked_calls: Mapping[str, Sequence[Example]],
        *,
        evidence: Sequence[str] = (),
        reason: str = "",
        proposal_id: str | None = None,
    ) -> int:
        """Add recorded calls to primitives as their worked calls (L4), and change nothing else.

        They are taken as they are: what a tool that touches the world answered can not be tried.
        A call that the tool has an answer to keeps that answer, and no tool gets more worked calls
        than ``InsertPolicy.most_examples``. Composites above are pinned anew in the same change.

        Args:
            worked_calls: By name of the tool.
            evidence: Ids of the episodes that they were recorded in.
            reason: Why, for the tools' history.
            proposal_id: Recognises a retry: the same id changes the library once.

        Returns:
            The library version that holds them.

        Raises:
            UsageError: A tool is a composite, whose worked calls are tried by ``insert``; or a
                recorded call is not JSON data.
            ToolNotFoundError: The library has no tool of a name given.
            LibraryError: Composites above call each other in a circle, so no pin can be moved.
            StaleVersionError: Other writers were faster every time.

        Example:
            >>> from agentkit import ToolDefinition, open_store
            >>> from agentkit.tools.definition import Example
            >>> manager = ToolManager(open_store("memory:"))
            >>> manager.register([ToolDefinition(name="weather")])
            1
            >>> manager.record({"weather": [Example(arguments={"city": "Rome"}, result="sunny")]})
            2
        """
        check_recorded(worked_calls)
        most = self._procedure.policy.most_examples
        return self._write(
            Provenance.of(proposal_id, "record", reason=reason, evidence=evidence),
            lambda held: with_recorded(held, worked_calls, most=most),
        )

    def learn(
        self,
        episodes: Iterable[Episode],
        *,
        rules: LearningRules = LearningRules(),  # noqa: B008 - frozen
        passed: Passed = has_passed,
        reason: str = "",
        proposal_id: str | None = None,
        dry_run: bool = False,
    ) -> LearnReport:
        """Add worked examples (L4) to the tools that episodes used with success.

        Retrieval reads their queries, so that tools are found by what they were asked for. All
        tools change in one commit, with the composites above pinned anew. The same episodes teach
        once: what a tool has learned stays, and what was rolled back is not learned again. A tool
        whose change is tried in shadow or canary learns when that is over, so that both arms of the
        experiment keep their texts.

        Args:
            episodes: What happened, in any order.
            rules: What is kept.
            passed: Which episodes went well; by default those whose verdict says so.
            reason: Why, for the tools' history.
            proposal_id: Recognises a retry: the same id changes the library once, and adds nothing
                the second time. The history shows it behind ``learn-``.
            dry_run: Write nothing, and report what would be added.

        Returns:
            What was added, and why other calls taught nothing.

        Raises:
            LibraryError: Composites above call each other in a circle, so no pin can be moved.
            StaleVersionError: Other writers were faster every time.
            UsageError: Called where an event loop runs; await ``learn_async`` there.

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
        taken = tuple(episodes)
        return from_sync(
            lambda: self.learn_async(
                taken,
                rules=rules,
                passed=passed,
                reason=reason,
                proposal_id=proposal_id,
                dry_run=dry_run,
            )
        )

    async def learn_async(
        self,
        episodes: Iterable[Episode],
        *,
        rules: LearningRules = LearningRules(),  # noqa: B008 - frozen
        passed: Passed = has_passed,
        reason: str = "",
        proposal_id: str | None = None,
        dry_run: bool = False,
    ) -> LearnReport:
        """As ``learn``, where an event loop runs."""
        every_use = uses_of(episodes, passed=passed)
        teaching = Teaching(
            rules=rules,
            policy=self._procedure.policy,
            limits=self._procedure.limits,
            learned_from=self._learned_from,
        )
        attempts_left = self._procedure.policy.attempts
        while True:
            on = self._journal.position
            library = on.library
            tried = {
                one.tool_name for one in on.ledger.proposals.values() if one.state in EXPERIMENTS
            }
            uses = tuple(one for one in every_use if one.tool not in tried)
            lessons = await lessons_of(uses, library, teaching)
            changed = repinned(library, lessons.definitions) if lessons.definitions else ()
            report = lessons.report(changed, uses=len(uses), version=library.version)
            if dry_run or not changed:
                return report
            try:
                return self._taught(report, changed, on, lesson(proposal_id, report, reason))
            except StaleVersionError:
                attempts_left -= 1
                if not attempts_left:
                    raise
                self._journal.reload()

    def insert(
        self,
        candidate: Candidate,
        *,
        evidence: Sequence[str] = (),
        reason: str = "",
        proposal_id: str | None = None,
    ) -> InsertOutcome:
        """Add a candidate, merge it into a tool that does the same, or reject it with a reason.

        Args:
            candidate: The text of one function, a definition with a program, or, when the policy
                allows primitives, a ``Tool`` with code.
            evidence: Ids of the episodes that it was made from.
            reason: Why, for the tool's history.
            proposal_id: Recognises a retry: the same id changes the library once.

        Returns:
            What came of it. With ``Rejected`` the library is as it was.

        Raises:
            StoreError: The store failed.
            ModelError: The judge could not answer.
            UsageError: Called where an event loop runs; await ``insert_async`` there.
        """
        return from_sync(
            lambda: self.insert_async(
                candidate, evidence=evidence, reason=reason, proposal_id=proposal_id
            )
        )

    async def insert_async(
        self,
        candidate: Candidate,
        *,
        evidence: Sequence[str] = (),
        reason: str = "",
        proposal_id: str | None = None,
    ) -> InsertOutcome:
        """As ``insert``, where an event loop runs."""
        provenance = Provenance.of(proposal_id, "insert", reason=reason, evidence=evidence)
        attempts_left = self._procedure.policy.attempts
        while True:
            on = self._journal.position
            decision = await decide(candidate, on.snapshot, self._procedure)
            if isinstance(decision, Rejected):
                return decision
            try:
                return self._carry_out(decision, on, provenance)
            except StaleVersionError:
                self._journal.reload()
                attempts_left -= 1
                if not attempts_left:
                    return _contended(decision)

    def edit(
        self,
        build: Callable[[Library], LibraryChange | None],
        *,
        operation: Operation = "edit",
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
            StoreError: The store failed, or other writers were faster every time.
        """

        def decide(on: Position) -> Step | None:
            change = build(on.library)
            return None if change is None else edit_step(on, change, self._author, operation)

        attempts = self._procedure.policy.attempts
        return self._journal.write(decide, attempts=attempts).library.version

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

        def decide(on: Position) -> Step | None:
            change = rollback_change(
                self._store, tool_name, to_version=to_version, proposal_id=change_id
            )
            told = replace(change, reason=reason or change.reason)
            return restoring_step(on, told, author or self._author, to_version=to_version)

        attempts = self._procedure.policy.attempts
        return self._journal.write(decide, attempts=attempts).library.version

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
            StoreError: The store failed, or other writers were faster every time.
        """
        if change.proposal_id:
            self.roll_back(change.proposal_id, reason=reason, author=author)
            return self.library.version
        change_id = f"rollback-{uuid.uuid4().hex}"

        def decide(on: Position) -> Step | None:
            who = author or self._author
            history = self._store.history
            return undo_step(on, change, who, reason, history=history, change_id=change_id)

        attempts = self._procedure.policy.attempts
        return self._journal.write(decide, attempts=attempts).library.version

    def submit(self, suggestion: Suggestion) -> ProposalRecord:
        """Take in what a proposer suggests, and look at it with every check.

        A proposal that checks let pass is ``validated``, or stays ``proposed`` while somebody must
        agree; with a ``change_judge`` that one is asked at once. Any other is ``rejected``, with
        every reason. A proposal that is known already changes nothing.

        Returns:
            Where the proposal stands.

        Raises:
            StoreError: The store failed, or other writers were faster every time.
            ModelError: The judge could not answer; the proposal is kept, and waits.
            UsageError: Called where an event loop runs; await ``submit_async`` there.
        """
        proposal_id, kept = self._lifecycle.identified(suggestion)
        return from_sync(lambda: self._lifecycle.take_in(proposal_id, kept))

    async def submit_async(
        self, suggestion: Suggestion, *, episodes: Sequence[Episode] = ()
    ) -> ProposalRecord:
        """As ``submit``, where an event loop runs.

        Args:
            suggestion: What a proposer suggests.
            episodes: What happened lately, beside the episodes that the suggestion names as its
                evidence: a new rule may not refuse a call that the tool took in them.
        """
        proposal_id, kept = self._lifecycle.identified(suggestion)
        return await self._lifecycle.take_in(proposal_id, kept, episodes)

    def approve(self, proposal_id: str, *, person: Author, reason: str = "") -> ProposalRecord:
        """A person agrees to an open proposal.

        Raises:
            UsageError: There is no such proposal, it is decided, or ``person`` is none.
            StoreError: The store failed, or other writers were faster every time.
        """
        return self._lifecycle.approve(proposal_id, person, reason)

    def reject(self, proposal_id: str, *, person: Author, reason: str) -> ProposalRecord:
        """A person says no to a proposal that is not active yet.

        Raises:
            UsageError: There is no such proposal, it is or was active, or ``person`` is none.
            StoreError: The store failed, or other writers were faster every time.
        """
        return self._lifecycle.reject(proposal_id, person, reason)

    def overrule(
        self, proposal_id: str, *, codes: Collection[str], person: Author, reason: str
    ) -> ProposalRecord:
        """A person says that the checks were wrong about the words of a rejected proposal.

        It goes on as if they had passed: whoever must agree to it is asked, and the gates decide.
        Overruling is no approval. Which codes may be overruled, and why no others, is told by
        ``agentkit.evolution.validation.overruling.OVERRULABLE``.

        Args:
            proposal_id: Which.
            codes: All codes for which it is rejected, named one by one.
            person: Who overrules them, and answers for it.
            reason: Why the checks are wrong.

        Raises:
            UsageError: There is no such proposal, or it is not rejected; codes are missing, or may
                not be overruled; its proposer is in quarantine; ``person`` is none; the reason is
                empty; or called where an event loop runs.
            StoreError: The store failed, or other writers were faster every time.
        """
        return from_sync(lambda: self._lifecycle.overrule(proposal_id, codes, person, reason))

    def judge(self, proposal_id: str, judgement: Judgement) -> ProposalRecord:
        """Record what a judge says of an open proposal; one that says no rejects it.

        Raises:
            UsageError: There is no such proposal, it is decided, or its proposer judges it.
            StoreError: The store failed, or other writers were faster every time.
        """
        return self._lifecycle.record_judgement(proposal_id, judgement)

    def assess(self, proposal_id: str, reports: Iterable[GateReport]) -> ProposalRecord:
        """Record what gates say of a proposal at its stage, for ``advance`` to act on.

        The reports of an offline comparison come in this way; those of shadow and canary are asked
        for by ``advance``, with ``gates``.

        Raises:
            UsageError: There is no such proposal, or it is not validated yet.
            StoreError: The store failed, or other writers were faster every time.
        """
        return self._lifecycle.record_reports(proposal_id, tuple(reports))

    def standing(self, proposal_id: str) -> Standing:
        """What a proposal waits for, or why it ended, and which command comes next.

        Numbers of a shadow or canary that goes on are not looked at; ``advance`` tells them.

        Raises:
            UsageError: There is no such proposal.
        """
        return self._lifecycle.standing(proposal_id)

    def advance(self, proposal_id: str | None = None) -> tuple[Advance, ...]:
        """Bring one open proposal, or all, on by at most one stage each.

        Args:
            proposal_id: Which; None for all that are open, oldest first.

        Returns:
            What came of each, also of those that wait.

        Raises:
            UsageError: There is no such proposal; or called where an event loop runs.
            StoreError: The store failed, or other writers were faster every time. What was brought
                on before stays.
        """
        wanted = self._open() if proposal_id is None else (proposal_id,)
        return tuple(from_sync(partial(self._lifecycle.advance, one)) for one in wanted)

    async def advance_async(self, proposal_id: str | None = None) -> tuple[Advance, ...]:
        """As ``advance``, where an event loop runs."""
        wanted = self._open() if proposal_id is None else (proposal_id,)
        return tuple([await self._lifecycle.advance(one) for one in wanted])

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
            StoreError: The store failed, or other writers were faster every time.
        """
        return self._lifecycle.roll_back(which, author or self._author, reason)

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
        self._lifecycle.pin(version, tool_name, author or self._author, reason)
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
        self._lifecycle.unpin(tool_name, author or self._author, reason)
        return self.served

    def release(self, proposer: str, *, person: Author, reason: str = "") -> ProposerRecord:
        """Take from a quarantined proposer again; its proposals are looked at anew.

        Raises:
            UsageError: Nobody of that name ever proposed anything, or ``person`` is none.
            StoreError: The store failed, or other writers were faster every time.
        """
        return from_sync(lambda: self._lifecycle.release(proposer, person, reason))

    def revalidate(self) -> Revalidation:
        """Look again at the composites whose children changed untried.

        Raises:
            StoreError: The store failed, or other writers were faster every time.
            UsageError: Called where an event loop runs; await ``revalidate_async`` there.
        """
        return from_sync(self._lifecycle.revalidate)

    async def revalidate_async(self) -> Revalidation:
        """As ``revalidate``, where an event loop runs."""
        return await self._lifecycle.revalidate()

    def preview(self, candidate: Candidate) -> InsertOutcome:
        """What ``insert`` would do; nothing is written. The version is the next one."""
        return from_sync(lambda: self.preview_async(candidate))

    async def preview_async(self, candidate: Candidate) -> InsertOutcome:
        """As ``preview``, where an event loop runs."""
        snapshot = self._journal.snapshot
        decision = await decide(candidate, snapshot, self._procedure)
        if isinstance(decision, Rejected):
            return decision
        version = snapshot.library.version + bool(decision.upserts)
        return told(decision, snapshot.after(decision, version).library)

    async def review(self, candidate: Candidate) -> Rejected | None:
        """Why ``insert`` would reject a candidate; None when it would not."""
        outcome = await self.preview_async(candidate)
        return outcome if isinstance(outcome, Rejected) else None

    def _open(self) -> tuple[str, ...]:
        records = self._journal.reload().ledger.proposals.values()
        return tuple(record.proposal_id for record in records if record.is_open)

    def _write(
        self, provenance: Provenance, build: Callable[[Library], tuple[ToolDefinition, ...]]
    ) -> int:
        """Commit what ``build`` makes of the newest library; nothing when it makes nothing."""
        attempts_left = self._procedure.policy.attempts
        while True:
            on = self._journal.position
            try:
                changed = build(on.library)
                if changed:
                    self._journal.commit(provenance.step(changed, on.library, self._author), on)
                return self._journal.reload().library.version
            except StaleVersionError:
                attempts_left -= 1
                if not attempts_left:
                    raise
                self._journal.reload()

    def _taught(
        self,
        report: LearnReport,
        changed: tuple[ToolDefinition, ...],
        on: Position,
        provenance: Provenance,
    ) -> LearnReport:
        """Commit what was learned; a proposal that the store knows has taught it before."""
        step = provenance.step(changed, on.library, self._author)
        committed = self._journal.commit(step, on)
        self._journal.reload()
        version = committed.version
        return report.written(version) if committed.is_new else report.repeated(version)

    def _learned_from(self, name: str) -> frozenset[str]:
        """Ids of the episodes that a tool has learned from, taken back or not."""
        lessons = (r for r in self._store.history(name) if r.proposal_id.startswith(LESSON))
        return frozenset(episode_id for lesson in lessons for episode_id in lesson.evidence)

    def _carry_out(
        self, decision: Addition | Merger, on: Position, provenance: Provenance
    ) -> InsertOutcome:
        changed = decision.upserts
        if not changed:
            return self._earlier(decision, provenance) or told(decision, on.library)
        step = provenance.step(changed, on.library, self._author)
        committed = self._journal.commit(step, on)
        if not committed.is_new:
            return self._repeated(changed[0], provenance, committed.version)
        if isinstance(decision, Addition):
            self._journal.know([decision.tool])
        after = on.snapshot.after(decision, committed.version)
        self._journal.adopt(after, changed)
        return told(decision, after.library)

    def _repeated(
        self, wanted: ToolDefinition, provenance: Provenance, version: int
    ) -> InsertOutcome:
        """The store knew the proposal: what it made then, if that was the same."""
        library = self._journal.reload().library
        held = library.get(wanted.name)
        if held is None or held.definition != wanted:
            return Rejected(
                code="proposal_reused",
                name=wanted.name,
                explanation=f"the proposal {provenance.identity!r} made library version {version}, "
                f"which was another change than adding {wanted.name!r}",
                advice="give each candidate a proposal id of its own",
            )
        return told(Addition(tool=held), library.at_version(version))

    def _earlier(self, decision: Addition | Merger, provenance: Provenance) -> InsertOutcome | None:
        """What the proposal did when it was first made, for a retry that finds it done."""
        if isinstance(decision, Addition) or provenance.is_new:
            return None
        library, name = self._journal.snapshot.library, decision.into.name
        made = [r for r in self._store.history(name) if r.proposal_id == provenance.identity]
        if not made:
            return None
        at = library.at_version(made[0].version)
        return told(Addition(tool=library[name]) if decision.is_itself else decision, at)


def _contended(decision: Addition | Merger) -> Rejected:
    name = decision.upserts[0].name
    return Rejected(
        code="contention",
        name=name,
        explanation=f"other writers were faster every time {name!r} was to be written",
        advice="try again later, or raise InsertPolicy.attempts",
    )
