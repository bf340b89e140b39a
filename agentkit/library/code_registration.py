"""Writing to the library what code says and it does not know.

A tool that the library does not know is registered. When the contract (L1) of a function has
changed, the code wins: a new revision is written that keeps every learned text and rule that still
fits, and names what does not. Earlier revisions keep it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from agentkit.composites.contracts import rule_problems
from agentkit.errors import CodeDriftError, ReadOnlyStoreError, StoreUnavailableError
from agentkit.library.chain import environment_signer, event_digests
from agentkit.library.changes import commit_with_retry, now
from agentkit.library.code_binding import (
    CodeBinding,
    LibraryStore,
    agree,
    by_name,
    with_code,
    without_code,
)
from agentkit.library.events import Author, Operation, chained, written
from agentkit.library.library import Library
from agentkit.library.merging import rebase
from agentkit.library.store import LibraryChange
from agentkit.tools.definition import Signature, ToolDefinition
from agentkit.tools.rules.records import Rule
from agentkit.tools.rules.rendering import rule_sentence
from agentkit.tools.schema import parts_at
from agentkit.tools.schema_validator import fits
from agentkit.tools.tool import Tool, contract_of


@dataclass(frozen=True, kw_only=True, slots=True)
class _Revision:
    """The decision about one tool whose code and library definition differ.

    Attributes:
        definition: What is written now: the contract of the code, with what was learned as far as
            it fits.
        difference: What code and library do not agree on, in words.
        lost: What was learned and is not carried over, in words.
    """

    definition: ToolDefinition
    difference: str
    lost: tuple[str, ...] = ()


def _carry_over(
    code: ToolDefinition, held: ToolDefinition, base: ToolDefinition, library: Library
) -> _Revision:
    """The library's definition moved onto a contract that changed in code (a three-way merge).

    Args:
        code: The definition in code.
        held: The library's.
        base: What ``held`` was before anything was learned: the code as it was last seen.
        library: Where the tool lives.
    """
    contract = contract_of(code.signature, held.signature)
    merged = rebase(base, held, replace(code, name=held.name, signature=contract))
    definition, unfit = _fitting(merged.definition, library)
    texts = (path for path in merged.conflicts if not path.startswith("signature"))
    return _Revision(
        definition=definition,
        difference=_difference(held.signature, contract),
        lost=tuple(sorted({*texts, *map(rule_sentence, unfit)})),
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
        if parts_at(schema, name)
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
    """Describe what changed in a contract."""
    before, after = held.properties, code.properties
    names = {
        "adds": [name for name in after if name not in before],
        "drops": [name for name in before if name not in after],
        "changes": [name for name in after if name in before and after[name] != before[name]],
    }
    parts = [f"{what} {', '.join(some)}" for what, some in names.items() if some]
    return f"the code {' and '.join(parts) or 'has another contract'}"


_FROM_CODE = frozenset({"register", "bind", "import"})
"""Operations that write a definition as its source has it, before anything was learned."""


def bind_code(
    store: LibraryStore, tools: Iterable[Tool], *, frozen: bool = False
) -> tuple[Library, CodeBinding]:
    """Bind code to the newest library of a store, and write what the library does not know.

    Args:
        store: Keeps the library. One that cannot be written to, such as an artifact, is used as
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
            names = ", ".join(line.partition(":")[0] for line in plan.differences)
            note = f"{names}{': ' if names else ''}not written to the library: {error}"
            bound = with_code(plan.held, given)
            return bound, CodeBinding(
                library_version=bound.version, without_code=without_code(bound), notes=(note,)
            )

    return commit_with_retry(attempt)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Plan:
    """The changes to write.

    Attributes:
        held: The newest library.
        new: Tools that it lacks.
        revisions: Tools whose contract changed in code, by name.
        reworded: Tools whose words changed in code alone.
    """

    held: Library
    new: tuple[ToolDefinition, ...] = ()
    revisions: Mapping[str, _Revision] = field(default_factory=dict)
    reworded: tuple[str, ...] = ()

    @property
    def differences(self) -> tuple[str, ...]:
        """The differences between code and library, one line each."""
        version = self.held.version
        return (
            *(f"{one.name}: library version {version} does not have it" for one in self.new),
            *(f"{name}: {one.difference}" for name, one in self.revisions.items()),
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
    last = _last_from_code(store)
    revisions = {}
    for name in changed:
        earlier = [one.definition for one in store.history(name) if one.definition]
        seen = [one for one in earlier if one.digest == last.get(name)]
        base = next(iter((*seen[-1:], *earlier)), known[name])
        revisions[name] = _carry_over(code[name], known[name], base, held)
    return _Plan(
        held=held,
        new=new,
        revisions=revisions,
        reworded=tuple(
            name
            for name in reworded
            if any(
                one.definition.description != code[name].description
                for one in store.history(name)
                if one.definition and one.definition.digest == last.get(name)
            )
        ),
    )


def _last_from_code(store: LibraryStore) -> Mapping[str, str]:
    """Digests of the last definitions that events say came from the tools' source, by tool."""
    return {
        name: digest
        for event in store.events()
        if event.kind == "written" and event.facts.get("operation") in _FROM_CODE
        for name, digest in event_digests(event)
    }


def _carried_out(
    plan: _Plan, store: LibraryStore, tools: Sequence[Tool]
) -> tuple[Library, CodeBinding]:
    """Write what there is to write, and bind the code to what came of it."""
    library = plan.held
    if plan.new:
        reason = f"registered from code: {', '.join(one.name for one in plan.new)}"
        library = _committed(store, library, plan.new, "register", reason=reason)
    if plan.revisions:
        changes = "; ".join(f"{name}: {one.difference}" for name, one in plan.revisions.items())
        library = _committed(
            store,
            library,
            [one.definition for one in plan.revisions.values()],
            "bind",
            reason=f"the contract changed in code: {changes}",
            lost={name: list(one.lost) for name, one in plan.revisions.items() if one.lost},
        )
    bound = with_code(library, tools)
    return bound, CodeBinding(
        library_version=library.version,
        registered=tuple(one.name for one in plan.new),
        revised=tuple(plan.revisions),
        without_code=without_code(bound),
        notes=tuple(_notes(plan)),
    )


def _committed(
    store: LibraryStore,
    held: Library,
    definitions: Sequence[ToolDefinition],
    operation: Operation,
    *,
    reason: str,
    lost: Mapping[str, list[str]] = MappingProxyType({}),
) -> Library:
    """The library after one change."""
    author = Author(kind="program", name="agentkit")
    change_id = f"{operation}-{uuid.uuid4().hex}"
    event = written(operation, change_id, definitions, before=held, author=author, reason=reason)
    if lost:
        event = replace(event, facts={**event.facts, "not_carried_over": lost})
    events = store.events()
    last = events[-1] if events else None
    change = LibraryChange(
        proposal_id=change_id,
        upserts=tuple(definitions),
        author=author.name,
        reason=reason,
        events=chained(last, [event], at=now(), signer=environment_signer()),
    )
    version = store.commit(change, expected_version=held.version)
    return held.with_tools(definitions).at_version(version)


def _notes(plan: _Plan) -> Iterator[str]:
    """Notes for people, one line for each tool."""
    for name, one in plan.revisions.items():
        lost = f" without: {'; '.join(one.lost)} (agentkit rollback {name})" if one.lost else ""
        yield f"{name}: {one.difference}; a new revision keeps what was learned{lost}"
    for name in plan.reworded:
        yield (
            f"{name}: its docstring has changed; models go on reading the library's words "
            "('agentkit tools add FILE --on-conflict replace' takes those of the code)"
        )
