"""``ToolManager``: the only writer of a library."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

from agentkit.errors import CompositeError, StaleVersionError, UsageError
from agentkit.evolution.duplicates import Judge
from agentkit.evolution.insert import (
    Addition,
    Merger,
    Procedure,
    Snapshot,
    decide,
    upserts,
)
from agentkit.evolution.outcome import Added, InsertOutcome, Merged, Rejected
from agentkit.evolution.policy import InsertPolicy
from agentkit.evolution.reading import Candidate
from agentkit.evolution.signatures import SignatureIndex
from agentkit.library.dag import depth, flat_size
from agentkit.library.graph import in_order
from agentkit.library.library import Library
from agentkit.library.store import LibraryChange, ToolStore
from agentkit.tools.composite.binding import composite_tool
from agentkit.tools.composite.limits import CompositeLimits
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

T = TypeVar("T")


class ToolManager:
    """Decides what enters a library, and writes it: the only writer (CoCoDA, Algorithm 3).

    It holds the newest snapshot, bound and linked. When another writer was faster, the candidate
    is judged again on what that writer made. Several managers may share one store.

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
        tools: Iterable[Tool] = (),
        policy: InsertPolicy = InsertPolicy(),  # noqa: B008 - frozen
        limits: CompositeLimits = CompositeLimits(),  # noqa: B008 - frozen
        author: str = "agentkit",
        judge: Judge | None = None,
    ) -> None:
        self._store = store
        self._code = {tool.name: tool for tool in tools if tool.is_bound}
        self._procedure = Procedure(policy=policy, limits=limits, judge=judge)
        self._author = author
        self._snapshot = self._load()

    @property
    def library(self) -> Library:
        """The newest snapshot that this manager has seen, bound and linked."""
        return self._snapshot.library

    def refresh(self) -> Library:
        """Take up what other writers made."""
        self._snapshot = self._load()
        return self._snapshot.library

    def register(
        self, tools: Iterable[Tool | ToolDefinition], *, reason: str = "", proposal_id: str = ""
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
        identity = proposal_id or _new_id("register")
        for attempt in range(1, self._procedure.policy.attempts + 1):
            new = tuple(t.definition for t in given if t.name not in self.library)
            try:
                if new:
                    self._store.commit(
                        self._change(new, identity, reason, ()),
                        expected_version=self.library.version,
                    )
            except StaleVersionError:
                if attempt == self._procedure.policy.attempts:
                    raise
            else:
                break
            self.refresh()
        return self.refresh().version

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
        return _from_sync(
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
        identity = proposal_id or _new_id("insert")
        attempts_left = self._procedure.policy.attempts
        while True:
            snapshot = self._snapshot
            decision = await decide(candidate, snapshot, self._procedure)
            if isinstance(decision, Rejected):
                return decision
            try:
                return self._carry_out(decision, snapshot, identity, reason, tuple(evidence))
            except StaleVersionError:
                self.refresh()
                attempts_left -= 1
                if not attempts_left:
                    return _contended(decision)

    def preview(self, candidate: Candidate) -> InsertOutcome:
        """What ``insert`` would do; nothing is written. The version is the next one."""
        return _from_sync(lambda: self.preview_async(candidate))

    async def preview_async(self, candidate: Candidate) -> InsertOutcome:
        """As ``preview``, where an event loop runs."""
        snapshot = self._snapshot
        decision = await decide(candidate, snapshot, self._procedure)
        if isinstance(decision, Rejected):
            return decision
        version = snapshot.library.version + bool(upserts(decision))
        grown = _grown(snapshot, decision, self._procedure.limits, version=version)
        return _outcome(decision, grown.library)

    async def review(self, candidate: Candidate) -> Rejected | None:
        """Why ``insert`` would reject a candidate; None when it would not."""
        outcome = await self.preview_async(candidate)
        return outcome if isinstance(outcome, Rejected) else None

    def _load(self) -> Snapshot:
        library = self._store.load()
        code = {name: tool for name, tool in self._code.items() if name in library}
        for name, tool in code.items():
            _check_same_parameters(tool, library[name].definition)
        linked = _linked(library.bind(code), self._procedure.limits)
        return Snapshot(library=linked, index=SignatureIndex(library.definitions))

    def _carry_out(
        self,
        decision: Addition | Merger,
        snapshot: Snapshot,
        identity: str,
        reason: str,
        evidence: tuple[str, ...],
    ) -> InsertOutcome:
        changed = upserts(decision)
        if not changed:
            return self._earlier(decision, identity) or _outcome(decision, snapshot.library)
        expected = snapshot.library.version
        change = self._change(changed, identity, reason, evidence)
        version = self._store.commit(change, expected_version=expected)
        if version <= expected:
            return self._repeated(changed[0], identity, version)
        if isinstance(decision, Addition) and decision.tool.is_bound:
            self._code[decision.tool.name] = decision.tool
        grown = _grown(snapshot, decision, self._procedure.limits, version=version)
        self._snapshot = grown
        return _outcome(decision, grown.library)

    def _change(
        self,
        definitions: tuple[ToolDefinition, ...],
        identity: str,
        reason: str,
        evidence: tuple[str, ...],
    ) -> LibraryChange:
        return LibraryChange(
            proposal_id=identity,
            upserts=definitions,
            author=self._author,
            reason=reason,
            evidence=evidence,
        )

    def _repeated(self, wanted: ToolDefinition, identity: str, version: int) -> InsertOutcome:
        """The store knew the proposal: what it made then, if that was the same."""
        library = self.refresh()
        held = library.get(wanted.name)
        if held is None or held.definition != wanted:
            return Rejected(
                code="proposal_reused",
                name=wanted.name,
                explanation=f"the proposal {identity!r} made library version {version}, which was "
                f"another change than adding {wanted.name!r}",
                advice="give each candidate a proposal id of its own",
            )
        return _outcome(Addition(tool=held), library.at_version(version))

    def _earlier(self, decision: Addition | Merger, identity: str) -> InsertOutcome | None:
        """What the proposal did when it was first made, for a retry that finds it done."""
        if isinstance(decision, Addition):
            return None
        library = self.library
        made = [r for r in self._store.history(decision.into.name) if r.proposal_id == identity]
        if not made:
            return None
        at = library.at_version(made[0].version)
        if decision.is_itself:
            return _outcome(Addition(tool=library[decision.into.name]), at)
        return _outcome(decision, at)


def _linked(library: Library, limits: CompositeLimits) -> Library:
    """Every composite bound to its children, as far as these are sound."""
    for name in in_order(library.tools, library.dag.children):
        if library[name].definition.is_composite:
            try:
                bound = composite_tool(library[name].definition, library.tools, limits=limits)
            except CompositeError:
                continue  # stays unbound; what would be built on it is rejected with the reason
            library = library.with_tools([bound])
    return library


def _grown(
    snapshot: Snapshot, decision: Addition | Merger, limits: CompositeLimits, *, version: int
) -> Snapshot:
    """The snapshot after a decision, without reading the store again."""
    library = snapshot.library
    if isinstance(decision, Addition) and not decision.tool.definition.is_composite:
        library = library.with_tools([decision.tool])
    changed = upserts(decision)
    for definition in changed:  # children before parents
        if definition.is_composite:
            bound = composite_tool(definition, library.tools, limits=limits)
            library = library.with_tools([bound])
        elif definition.name in snapshot.library:
            library = library.with_tools([library[definition.name].with_definition(definition)])
    index = snapshot.index.with_definitions(changed)
    return Snapshot(library=library.at_version(version), index=index)


def _outcome(decision: Addition | Merger, library: Library) -> InsertOutcome:
    """What a decision came to, told of the library that holds it."""
    above = tuple(definition.name for definition in decision.repinned)
    if isinstance(decision, Merger):
        return Merged(
            into=decision.into.name,
            definition=decision.into,
            version=library.version,
            examples_moved=decision.moved,
            parameters=dict(decision.parameters),
            reason=decision.reason,
            repinned=above,
        )
    name = decision.tool.name
    return Added(
        definition=library[name].definition,
        version=library.version,
        depth=depth(library, name),
        flat_size=flat_size(library, name),
        revised=decision.revised,
        repinned=above,
    )


def _contended(decision: Addition | Merger) -> Rejected:
    name = upserts(decision)[0].name
    return Rejected(
        code="contention",
        name=name,
        explanation=f"other writers were faster every time {name!r} was to be written",
        advice="try again later, or raise InsertPolicy.attempts",
    )


def _check_same_parameters(tool: Tool, stored: ToolDefinition) -> None:
    if tool.definition.signature.parameters != stored.signature.parameters:
        raise UsageError(
            f"the parameters of {tool.name!r} in code differ from those in the library; add the "
            "definition in code to the library first (agentkit tools add --on-conflict replace)"
        )


def _new_id(what: str) -> str:
    return f"{what}-{uuid.uuid4().hex}"


def _from_sync(begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine from code that has no event loop."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(begin())
    raise UsageError(
        "insert() and preview() were called where an event loop runs; await insert_async() and "
        "preview_async() there"
    )
