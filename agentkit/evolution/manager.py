"""``ToolManager``: the only writer of a library."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from agentkit.episodes import Episode
from agentkit.errors import StaleVersionError, UsageError
from agentkit.evolution.decision import Addition, Merger, told
from agentkit.evolution.duplicates import Judge
from agentkit.evolution.insert import Procedure, decide
from agentkit.evolution.learning.lessons import Teaching, lessons_of
from agentkit.evolution.learning.report import LearnReport
from agentkit.evolution.learning.rules import LearningRules
from agentkit.evolution.learning.uses import Passed, has_passed, uses_of
from agentkit.evolution.loops import from_sync
from agentkit.evolution.outcome import InsertOutcome, Rejected
from agentkit.evolution.policy import InsertPolicy
from agentkit.evolution.provenance import LESSON, Provenance, lesson
from agentkit.evolution.reading import Candidate
from agentkit.evolution.recorded import check_recorded, with_recorded
from agentkit.evolution.snapshot import Snapshot
from agentkit.library.library import Library
from agentkit.library.linking import link
from agentkit.library.pins import repinned
from agentkit.library.store import ToolStore
from agentkit.tools.composite.binding import composite_tool
from agentkit.tools.composite.limits import CompositeLimits
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
        store: ToolStore,
        *,
        tools: Mapping[str, Tool] | Iterable[Tool] = (),
        policy: InsertPolicy = InsertPolicy(),  # noqa: B008 - frozen
        limits: CompositeLimits = CompositeLimits(),  # noqa: B008 - frozen
        author: str = "agentkit",
        judge: Judge | None = None,
    ) -> None:
        self._store = store
        self._code = {name: tool for name, tool in tools_by_name(tools).items() if tool.is_bound}
        self._procedure = Procedure(policy=policy, limits=limits, judge=judge)
        self._author = author
        self._snapshot = Snapshot.of(store.load(), self._code)
        self._linked: Library | None = None
        self._lock = threading.RLock()  # guards the two above, never a run or a commit

    @property
    def library(self) -> Library:
        """The newest snapshot that this manager has seen, bound and linked."""
        with self._lock:
            if self._linked is None:
                self._linked = link(self._snapshot.library, limits=self._procedure.limits)
            return self._linked

    def refresh(self) -> Library:
        """Take up what other writers made."""
        self._reload()
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
        self._code |= {tool.name: tool for tool in given if tool.is_bound}
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
        once: what a tool has learned stays, and what was rolled back is not learned again.

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
        uses = uses_of(episodes, passed=passed)
        teaching = Teaching(
            rules=rules,
            policy=self._procedure.policy,
            limits=self._procedure.limits,
            learned_from=self._learned_from,
        )
        attempts_left = self._procedure.policy.attempts
        while True:
            library = self._snapshot.library
            lessons = await lessons_of(uses, library, teaching)
            changed = repinned(library, lessons.definitions) if lessons.definitions else ()
            report = lessons.report(changed, uses=len(uses), version=library.version)
            if dry_run or not changed:
                return report
            try:
                return self._taught(report, changed, library, lesson(proposal_id, report, reason))
            except StaleVersionError:
                attempts_left -= 1
                if not attempts_left:
                    raise
                self._reload()

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
            snapshot = self._snapshot
            decision = await decide(candidate, snapshot, self._procedure)
            if isinstance(decision, Rejected):
                return decision
            try:
                return self._carry_out(decision, snapshot, provenance)
            except StaleVersionError:
                self._reload()
                attempts_left -= 1
                if not attempts_left:
                    return _contended(decision)

    def preview(self, candidate: Candidate) -> InsertOutcome:
        """What ``insert`` would do; nothing is written. The version is the next one."""
        return from_sync(lambda: self.preview_async(candidate))

    async def preview_async(self, candidate: Candidate) -> InsertOutcome:
        """As ``preview``, where an event loop runs."""
        snapshot = self._snapshot
        decision = await decide(candidate, snapshot, self._procedure)
        if isinstance(decision, Rejected):
            return decision
        version = snapshot.library.version + bool(decision.upserts)
        return told(decision, snapshot.after(decision, version).library)

    async def review(self, candidate: Candidate) -> Rejected | None:
        """Why ``insert`` would reject a candidate; None when it would not."""
        outcome = await self.preview_async(candidate)
        return outcome if isinstance(outcome, Rejected) else None

    def _write(
        self, provenance: Provenance, build: Callable[[Library], tuple[ToolDefinition, ...]]
    ) -> int:
        """Commit what ``build`` makes of the newest library; nothing when it makes nothing."""
        attempts_left = self._procedure.policy.attempts
        while True:
            held = self._snapshot.library
            try:
                changed = build(held)
                if changed:
                    change = provenance.change(changed, author=self._author)
                    self._store.commit(change, expected_version=held.version)
                return self._reload().version
            except StaleVersionError:
                attempts_left -= 1
                if not attempts_left:
                    raise
                self._reload()

    def _taught(
        self,
        report: LearnReport,
        changed: tuple[ToolDefinition, ...],
        library: Library,
        provenance: Provenance,
    ) -> LearnReport:
        """Commit what was learned; a proposal that the store knows has taught it before."""
        change = provenance.change(changed, author=self._author)
        version = self._store.commit(change, expected_version=library.version)
        self._reload()
        return report.written(version) if version > library.version else report.repeated(version)

    def _learned_from(self, name: str) -> frozenset[str]:
        """Ids of the episodes that a tool has learned from, taken back or not."""
        lessons = (r for r in self._store.history(name) if r.proposal_id.startswith(LESSON))
        return frozenset(episode_id for lesson in lessons for episode_id in lesson.evidence)

    def _reload(self) -> Library:
        loaded = Snapshot.of(self._store.load(), self._code)
        with self._lock:
            self._snapshot, self._linked = loaded, None
        return loaded.library

    def _carry_out(
        self, decision: Addition | Merger, snapshot: Snapshot, provenance: Provenance
    ) -> InsertOutcome:
        changed = decision.upserts
        if not changed:
            return self._earlier(decision, provenance) or told(decision, snapshot.library)
        expected = snapshot.library.version
        change = provenance.change(changed, author=self._author)
        version = self._store.commit(change, expected_version=expected)
        if version <= expected or not self._is_written(changed[0], provenance, version):
            return self._repeated(changed[0], provenance, version)
        if isinstance(decision, Addition) and decision.tool.is_bound:
            self._code[decision.tool.name] = decision.tool
        after = snapshot.after(decision, version)
        with self._lock:
            if version > self._snapshot.library.version:  # another thread may be ahead
                self._adopt(after, changed)
        return told(decision, after.library)

    def _adopt(self, snapshot: Snapshot, changed: Iterable[ToolDefinition]) -> None:
        """Go on with a snapshot that differs from the last one in ``changed`` only."""
        linked, limits = self._linked, self._procedure.limits
        before, self._snapshot, self._linked = self._snapshot, snapshot, None
        if linked is None or before.library.version != snapshot.library.version - 1:
            return
        for definition in changed:  # children before parents
            tool = snapshot.library[definition.name]
            if definition.is_composite:
                tool = composite_tool(definition, linked.tools, limits=limits)
            linked = linked.with_tools([tool])
        self._linked = linked.at_version(snapshot.library.version)

    def _is_written(self, wanted: ToolDefinition, provenance: Provenance, version: int) -> bool:
        """Whether that version was made by this change; a store skips an id that it knows."""
        if provenance.is_new:
            return True
        history = self._store.history(wanted.name)
        return any(r.version == version and r.definition == wanted for r in history)

    def _repeated(
        self, wanted: ToolDefinition, provenance: Provenance, version: int
    ) -> InsertOutcome:
        """The store knew the proposal: what it made then, if that was the same."""
        library = self._reload()
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
        library, name = self._snapshot.library, decision.into.name
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
