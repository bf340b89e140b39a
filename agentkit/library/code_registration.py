"""Writing to the library what code says and it does not know.

A tool that the library does not know is registered. When the contract (L1) of a function has
changed, the code wins: a new revision is written that keeps every learned text and rule that still
fits, and what does not fit waits as a proposal.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from agentkit.composites.rules import rule_problems
from agentkit.errors import (
    CodeDriftError,
    ReadOnlyStoreError,
    StoreUnavailableError,
)
from agentkit.library.chain_check import told_digests
from agentkit.library.changes import commit_with_retry, now
from agentkit.library.code_binding import (
    CodeBinding,
    LibraryStore,
    agree,
    by_name,
    contract_of,
    with_code,
    without_code,
)
from agentkit.library.events import Author, EventDraft, Operation, chained, written
from agentkit.library.library import Library
from agentkit.library.rebase import rebase
from agentkit.library.signing import environment_signer
from agentkit.library.store import LibraryChange
from agentkit.tools.definition import Signature, ToolDefinition
from agentkit.tools.rules.records import Rule
from agentkit.tools.rules.rendering import rule_sentence
from agentkit.tools.schema import places
from agentkit.tools.schema_validator import fits
from agentkit.tools.tool import Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class Revision:
    """What becomes of one tool whose code the library does not describe as it is.

    Attributes:
        definition: What is written now: the contract of the code, with what was learned as far as
            it fits.
        difference: What code and library do not agree on, in words.
        waiting: The definition with what code and library changed differently; None when nothing
            is left.
        lost: What fits neither, in words.
    """

    definition: ToolDefinition
    difference: str
    waiting: ToolDefinition | None = None
    lost: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The tool's name in the library."""
        return self.definition.name


def carry_over(
    code: ToolDefinition, held: ToolDefinition, base: ToolDefinition, library: Library
) -> Revision:
    """The library's definition moved onto a contract that changed in code (a three-way merge).

    Args:
        code: The definition in code.
        held: The library's.
        base: What ``held`` was before anything was learned: the code as it was last seen.
        library: Where the tool lives.

    Example:
        >>> from agentkit.tools.definition import Specification
        >>> from agentkit.tools.rules import OneOf
        >>> def loan(**properties):
        ...     return ToolDefinition.from_schema("loan", "", {"properties": properties})
        >>> base = loan(months={"type": "integer"})
        >>> rule = OneOf(parameter="months", values=(36, 48))
        >>> held = replace(base, specification=Specification(rules=(rule,)))
        >>> code = loan(months={"type": "integer"}, sum={"type": "number"})
        >>> carry_over(code, held, base, Library([held])).definition.specification.rules == (rule,)
        True
    """
    contract = contract_of(code.signature, held.signature)
    wanted = replace(code, name=held.name, signature=contract)
    merged = rebase(base, held, wanted).definition
    definition, _ = _fitting(merged, library)
    mine = rebase(base, wanted, replace(held, signature=base.signature)).definition
    candidate = replace(mine, signature=contract, origin=code.origin)
    candidate, unfit = _fitting(candidate, library)
    return Revision(
        definition=definition,
        difference=_difference(held.signature, contract),
        waiting=None if candidate.digest == definition.digest else candidate,
        lost=tuple(sorted({rule_sentence(one) for one in unfit})),
    )


def _fitting(
    definition: ToolDefinition, library: Library
) -> tuple[ToolDefinition, tuple[Rule, ...]]:
    """The definition without what its own contract refuses, and the rules among that."""
    schema = definition.signature.parameters
    examples = (one for one in definition.examples if fits(one.arguments, schema) is not False)
    texts = {
        name: text
        for name, text in definition.description.parameters.items()
        if places(schema, name)
    }
    fitting = replace(
        definition,
        description=replace(definition.description, parameters=texts),
        examples=tuple(examples),
    )
    unfit = tuple(
        rule for rule in definition.specification.rules if rule_problems(rule, fitting, library)
    )
    rules = tuple(rule for rule in definition.specification.rules if rule not in unfit)
    specification = replace(fitting.specification, rules=rules)
    return replace(fitting, specification=specification), unfit


def _difference(held: Signature, code: Signature) -> str:
    """What changed in a contract, in words."""
    gone = [name for name in held.properties if name not in code.properties]
    come = [name for name in code.properties if name not in held.properties]
    changed = [
        name
        for name, schema in code.properties.items()
        if name in held.properties and held.properties[name] != schema
    ]
    parts = [
        f"{what} {', '.join(names)}"
        for what, names in (("adds", come), ("drops", gone), ("changes", changed))
        if names
    ]
    if set(held.required) ^ set(code.required):
        parts.append("requires other parameters")
    if held.result != code.result:
        parts.append("returns something else")
    if held.effects != code.effects:
        parts.append("declares other effects")
    return f"the code {' and '.join(parts) or 'has another schema'}"


_FROM_CODE = frozenset({"register", "bind", "import"})
"""Operations that write a definition as its source has it, before anything was learned."""

_PYTHON_ORIGINS = frozenset({"function", "pydantic"})
"""Origins of definitions that were made from Python code."""


def bind_code(
    store: LibraryStore, tools: Iterable[Tool], *, frozen: bool = False
) -> tuple[Library, CodeBinding]:
    """Bind code to the newest library of a store, and write what the library does not know.

    Args:
        store: Keeps the library. One that can not be written to, such as an artifact, is used as
            it is, with a note.
        tools: Tools in code. Composites among them are bound and not registered: ``ToolManager``
            takes them in.
        frozen: Refuse what would have to be written.

    Returns:
        The library with the code bound and its composites linked, and what it came to.

    Raises:
        CodeDriftError: ``frozen``, and code and library differ.
        DuplicateToolError: Two tools have the same name.
        StoreError: The store failed, or other writers committed first every time.

    Example:
        >>> from agentkit import open_store, tool
        >>> @tool
        ... def ping(host: str) -> bool:
        ...     '''Ping.'''
        ...     return True
        >>> store = open_store("memory:")
        >>> [bind_code(store, [ping])[1].registered for _ in range(2)]
        [('ping',), ()]
    """
    given = tuple(tools)

    def attempt() -> tuple[Library, CodeBinding]:
        plan = _plan(store, given)
        if frozen and plan.differences:
            raise CodeDriftError(plan.differences)
        try:
            return _carried_out(plan, store, given)
        except (ReadOnlyStoreError, StoreUnavailableError) as error:
            note = f"{_names(plan.differences)}not written to the library: {error}"
            bound = with_code(plan.held, given)
            return bound, CodeBinding(
                library_version=bound.version, without_code=without_code(bound), notes=(note,)
            )

    return commit_with_retry(attempt)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Plan:
    """What there is to write.

    Attributes:
        held: The newest library.
        new: Tools that it lacks.
        revisions: Tools whose contract changed in code.
        reworded: Tools whose words changed in code alone.
    """

    held: Library
    new: tuple[ToolDefinition, ...] = ()
    revisions: tuple[Revision, ...] = ()
    reworded: tuple[str, ...] = ()

    @property
    def differences(self) -> tuple[str, ...]:
        """What code and library do not agree on, a line each."""
        version = self.held.version
        return (
            *(f"{one.name}: library version {version} does not have it" for one in self.new),
            *(f"{one.name}: {one.difference}" for one in self.revisions),
        )


def _plan(store: LibraryStore, tools: Sequence[Tool]) -> _Plan:
    held = store.load()
    code = by_name(tools, held)
    known = {name: held[name].definition for name in code if name in held}
    new = tuple(one for name, one in code.items() if name not in held)
    changed = [name for name in known if not agree(code[name].signature, known[name].signature)]
    reworded = [
        name
        for name, one in known.items()
        if one.description != code[name].description and name not in changed
    ]
    if not (changed or reworded):
        return _Plan(held=held, new=new)

    sources = _Sources(store)
    return _Plan(
        held=held,
        new=new,
        revisions=tuple(
            carry_over(code[name], known[name], sources.of(name, known[name]), held)
            for name in changed
        ),
        reworded=tuple(
            name
            for name in reworded
            if (told := sources.told(name)) and told.description != code[name].description
        ),
    )


class _Sources:
    """Finds the definition that a tool had before anything was learned.

    Args:
        store: Keeps the history.
    """

    def __init__(self, store: LibraryStore) -> None:
        self._store = store
        self._digests: dict[str, str] | None = None

    def of(self, name: str, held: ToolDefinition) -> ToolDefinition:
        """The last definition that came from the tool's source, or else its first one."""
        return self.told(name) or next(iter(self._revisions(name)), held)

    def told(self, name: str) -> ToolDefinition | None:
        """The last definition that an event says came from the tool's source."""
        digest = self._from_code().get(name)
        found = [one for one in self._revisions(name) if one.digest == digest]
        return found[-1] if found else None

    def _revisions(self, name: str) -> list[ToolDefinition]:
        return [one.definition for one in self._store.history(name) if one.definition]

    def _from_code(self) -> Mapping[str, str]:
        if self._digests is None:
            self._digests = {
                name: digest
                for event in self._store.events()
                if event.kind == "written" and event.facts.get("operation") in _FROM_CODE
                for name, digest in told_digests(event)
            }
        return self._digests


def _carried_out(
    plan: _Plan, store: LibraryStore, tools: Sequence[Tool]
) -> tuple[Library, CodeBinding]:
    """Write what there is to write, and bind the code to what came of it."""
    waiting: dict[str, str] = {}
    library = plan.held
    if plan.new:
        reason = f"registered from code: {', '.join(one.name for one in plan.new)}"
        library = _committed(store, library, plan.new, (), reason=reason, waiting=waiting)
    if plan.revisions:
        changes = "; ".join(f"{one.name}: {one.difference}" for one in plan.revisions)
        reason = f"the contract changed in code: {changes}"
        definitions = [one.definition for one in plan.revisions]
        library = _committed(
            store, library, definitions, plan.revisions, reason=reason, waiting=waiting
        )
    bound = with_code(library, tools)
    return bound, CodeBinding(
        library_version=library.version,
        registered=tuple(one.name for one in plan.new),
        revised=tuple(one.name for one in plan.revisions),
        waiting=waiting,
        without_code=without_code(bound),
        notes=(*_strange(plan, tools), *_notes(plan, waiting)),
    )


def _strange(plan: _Plan, tools: Sequence[Tool]) -> Iterator[str]:
    """That code and library have nothing in common, as where the store is another project's."""
    held = [
        one
        for one in plan.held.definitions
        if one.origin.kind in _PYTHON_ORIGINS and one.origin.reference
    ]
    code = {one.name for one in tools if one.is_bound}
    if held and code and code == {one.name for one in plan.new}:
        yield (
            f"this library knew none of the code here, and its own tools ({len(held):,}) have "
            "no code here; they stay as they are. If it belongs to another project, name the "
            "right `store`"
        )


def _committed(
    store: LibraryStore,
    held: Library,
    definitions: Sequence[ToolDefinition],
    revisions: Sequence[Revision],
    *,
    reason: str,
    waiting: dict[str, str],
) -> Library:
    """The library after one change, whose proposals are noted in ``waiting`` by tool."""
    author = Author(kind="program", name="agentkit")
    operation: Operation = "bind" if definitions[0].name in held else "register"
    change_id = f"{operation}-{uuid.uuid4().hex}"
    event = written(operation, change_id, definitions, before=held, author=author, reason=reason)
    lost = {one.name: list(one.lost) for one in revisions if one.lost}
    if lost:
        event = replace(event, facts={**event.facts, "not_carried_over": lost})
    written_now = {one.name: one for one in definitions}
    proposals = [_proposed(one, written_now[one.name], event) for one in revisions if one.waiting]
    events = store.events()
    change = LibraryChange(
        proposal_id=change_id,
        upserts=tuple(definitions),
        author=author.name,
        reason=reason,
        events=chained(
            events[-1] if events else None,
            (event, *proposals),
            at=now(),
            signer=environment_signer(),
        ),
    )
    version = store.commit(change, expected_version=held.version)
    waiting |= {one.tool_name: one.proposal_id for one in proposals}
    return held.with_tools(definitions).at_version(version)


def _proposed(revision: Revision, base: ToolDefinition, written: EventDraft) -> EventDraft:
    """What was learned and not carried over, as a proposal that waits for a person."""
    assert revision.waiting is not None
    reason = f"learned before the code changed, and not carried over: {revision.difference}"
    proposal_id = f"code-{revision.waiting.digest[:20]}"
    return replace(
        written,
        kind="proposed",
        reason=reason,
        proposal_id=proposal_id,
        tool_name=revision.name,
        digest_before="",
        digest_after="",
        facts={
            "needs": ["person"],
            "proposal": {
                "proposal_id": proposal_id,
                "stream": "code",
                "author": written.author.to_json(),
                "base": base.digest,
                "candidate": revision.waiting.to_json(),
                "reason": reason,
                "evidence": [],
                "created_at": "",
            },
        },
    )


def _notes(plan: _Plan, waiting: Mapping[str, str]) -> tuple[str, ...]:
    """What a person should know, one line for each tool."""
    notes = []
    for one in plan.revisions:
        left = "; ".join(one.lost)
        notes.append(
            f"{one.name}: {one.difference}; a new revision keeps what was learned"
            + (f", without: {left}" if left else "")
            + _next(waiting.get(one.name))
        )
    notes += [
        f"{name}: its docstring has changed; models go on reading the library's words "
        "('agentkit tools add FILE --on-conflict replace' takes those of the code)"
        for name in plan.reworded
    ]
    return tuple(notes)


def _next(proposal_id: str | None) -> str:
    if proposal_id is None:
        return ""
    return f"; the rest waits for you: agentkit review show {proposal_id}"


def _names(differences: Sequence[str]) -> str:
    names = ", ".join(line.partition(":")[0] for line in differences)
    return f"{names}: " if names else ""
