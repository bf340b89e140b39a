"""Pins: a composite names each child with the digest that it was made for.

A child whose contract moved under a composite is found here, before a user finds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from agentkit.composites.composite import called_in, join_effects, program_from_json
from agentkit.composites.parser import parse_expression
from agentkit.composites.problems import READING_LIMITS, Fault
from agentkit.composites.type_check import type_check
from agentkit.errors import CompositeError, LibraryError, SourceProblem
from agentkit.library.dag import cycle_among, in_order, reachable, shown
from agentkit.library.library import Library
from agentkit.library.store import StoreFault
from agentkit.tools.definition import ChildReference, Effects, ToolDefinition


def pin_faults(library: Library, names: Iterable[str] | None = None) -> tuple[StoreFault, ...]:
    """Every pin that does not hold, and every call that is not pinned.

    Codes are ``missing_child`` (not in the library), ``changed_child`` (it has another digest),
    ``unpinned_call`` and ``uncalled_pin``.

    Args:
        library: The library.
        names: The composites to look at; None for all.

    Returns:
        Composites in the order of the library; the faults of each in the order of its calls.

    Raises:
        ToolNotFoundError: The library has no tool of a name given.

    Example:
        >>> from agentkit import Library, ToolDefinition
        >>> from agentkit.tools.definition import ChildReference, Signature
        >>> pins = (ChildReference(name="add", digest="0" * 64),)
        >>> total = ToolDefinition(name="total", signature=Signature(children=pins))
        >>> [fault.code for fault in pin_faults(Library([total]))]
        ['missing_child', 'uncalled_pin']

    Cost: one look-up a call site and a pin; the digests of children, where nobody asked before.
    """
    selected = library.tools if names is None else dict.fromkeys(names)
    return tuple(fault for name in selected for fault in _pins(library, library[name].definition))


def _pins(library: Library, definition: ToolDefinition) -> Iterator[StoreFault]:
    name = definition.name
    pinned = {pin.name: pin.digest for pin in definition.signature.children}
    called = library.dag.children[name]
    is_read = definition.body is None or called_in(definition.body) is not None
    from_calls = f"recompose {name!r}"
    for child in dict.fromkeys((*called, *pinned)):
        fault = partial(StoreFault, place=name)
        tool = library.get(child)
        if tool is None:
            near = library.nearest(child)
            hint = f" (it has {', '.join(map(repr, near))})" if near else ""
            yield fault(
                code="missing_child",
                message=f"{name!r} calls {child!r}, which is not in the library{hint}",
                advice=f"put {child!r} back ('agentkit rollback'), or recompose {name!r} "
                "from tools that are there",
            )
        elif child not in pinned:
            message = f"the program of {name!r} calls {child!r}, but its signature does not pin it"
            yield fault(code="unpinned_call", message=message, advice=from_calls)
        elif pinned[child] != tool.definition.digest:
            yield fault(
                code="changed_child",
                message=f"{name!r} was made for {child!r} with digest {pinned[child][:12]}, the "
                f"library has {tool.definition.digest[:12]}",
                advice=f"look at what changed ('agentkit log --tool {child}'), then recompose "
                f"{name!r} from its text",
            )
        if child not in called and is_read:
            message = f"the signature of {name!r} pins {child!r}, but its program never calls it"
            yield fault(code="uncalled_pin", message=message, advice=from_calls)


def repinned(library: Library, changed: Iterable[ToolDefinition]) -> tuple[ToolDefinition, ...]:
    """Changed definitions, and everything made of them with its pins moved along.

    A digest covers the pins, so a change moves the digests of all composites above it, as in a
    Merkle tree. Their effects are rejoined as well. A composite above that would write, destroy or
    reach outside where it did not before keeps its pins, so that it is refused until somebody adds
    it again. Nothing else is validated here: whether those composites still do what they should is
    for the Tool Manager to find out.

    Args:
        library: The library before the change.
        changed: Definitions that are new, or that replace those of the same name.

    Returns:
        ``changed``, with pins on each other moved, and each composite above that pins one of
        them; children before parents, fit for the upserts of one ``LibraryChange``.

    Raises:
        LibraryError: A composite above is in a cycle: its digest would have to contain itself.

    Cost: the digests of the definitions returned.
    """
    by_name = {definition.name: definition for definition in changed}
    dag = library.with_tools(by_name.values()).dag
    above = reachable(by_name, dag.parents)
    order = list(in_order(above, dag.children))
    if len(order) < len(above):
        cycle = cycle_among(sorted(set(above).difference(order)), dag.children) or ()
        raise LibraryError(
            f"the pins of {shown(cycle)} cannot be moved: these composites call each other, and "
            "a digest cannot contain itself; rewrite one so that it does not call the next"
        )
    moved: dict[str, ToolDefinition] = {}
    for name in order:
        before = by_name.get(name) or library[name].definition
        pins = tuple(
            replace(pin, digest=moved[pin.name].digest) if pin.name in moved else pin
            for pin in before.signature.children
        )
        if pins != before.signature.children:
            after = _pinned(before, pins, library, moved)
            if name in by_name or not _does_more(after, before):
                moved[name] = after
        elif name in by_name:
            moved[name] = before
    return tuple(moved.values())


def _does_more(after: ToolDefinition, before: ToolDefinition) -> bool:
    """Whether a composite acts by now where nobody was asked about it: its children changed."""
    now, then = after.signature.effects, before.signature.effects
    return bool(
        (then.is_read_only and not now.is_read_only)
        or (now.destructive and not then.destructive)
        or (now.open_world and not then.open_world)
    )


def with_current_pins(library: Library, definition: ToolDefinition) -> ToolDefinition:
    """A composite pinned to what its program calls, as the library has it now.

    Its effects are rejoined from those of its children. Nothing is validated. A child that is
    missing keeps the pin that it had.

    Args:
        library: The library.
        definition: A composite of it.

    Cost: the digests of the children.
    """
    before = {pin.name: pin for pin in definition.signature.children}
    pins = []
    for child in library.dag.children[definition.name]:
        tool = library.get(child)
        if tool is not None:
            pins.append(ChildReference(name=child, digest=tool.definition.digest))
        elif child in before:
            pins.append(before[child])
    return _pinned(definition, tuple(pins), library, {})


def _pinned(
    definition: ToolDefinition,
    pins: tuple[ChildReference, ...],
    library: Library,
    moved: Mapping[str, ToolDefinition],
) -> ToolDefinition:
    """Replace the pins and rejoin effects from those children: a child may do more now."""
    signature = replace(definition.signature, children=pins)
    if all(pin.name in moved or pin.name in library for pin in pins):
        children = (moved.get(pin.name) or library[pin.name].definition for pin in pins)
        effects = join_effects(child.signature.effects for child in children)
        signature = replace(signature, effects=effects)
    return replace(definition, signature=signature)


_CODES_OF_PINS = {"unknown_tool", "missing_child", "changed_child"}


def library_faults(library: Library, names: Iterable[str] | None = None) -> tuple[StoreFault, ...]:
    """The faults of a library's composites, found without running anything.

    Circles of calls, pins, programs (the rules of the language, types against the children's L1),
    effects against those of the children, and conditions that cannot be read. Codes are those of
    ``pin_faults`` and ``SourceProblem``, ``cycle``, ``effects``, ``parameters`` and ``condition``.

    Args:
        library: The library.
        names: The tools to look at; None for all.

    Returns:
        Circles first, then tools in the order of the library; each fault once.

    Raises:
        ToolNotFoundError: The library has no tool of a name given.

    Cost: about a millisecond a composite.
    """
    selected = list(library.tools if names is None else dict.fromkeys(names))
    found = [fault for fault in _cycles(library) if names is None or fault.place in selected]
    for name in selected:
        definition = library[name].definition
        found += (_composite if definition.is_composite else _pins)(library, definition)
    return tuple(dict.fromkeys(found))


def _cycles(library: Library) -> Iterator[StoreFault]:
    """One fault for each composite in a circle, so that asking for any of them shows it."""
    dag = library.dag
    for name in sorted(dag.composites - dag.depths.keys()):
        below = reachable(dag.children[name], dag.children)
        if name not in below:
            continue
        circle = below.keys() & reachable([name], dag.parents)
        here = {one: tuple(c for c in dag.children[one] if c in circle) for one in circle}
        yield StoreFault(
            place=name,
            code="cycle",
            message=f"{name!r} is in a circle of calls: {shown(cycle_among([name], here) or ())}",
            advice="rewrite one of these composites so that it does not call the next",
        )


def _composite(library: Library, definition: ToolDefinition) -> Iterator[StoreFault]:
    name = definition.name
    pins = tuple(_pins(library, definition))
    yield from pins
    try:
        program = program_from_json(definition.body or {}, name=name, limits=READING_LIMITS)
    except CompositeError as error:
        yield from map(partial(_fault_of, name), error.problems)
        return
    try:
        program_from_json(
            definition.body or {}, tools=library.tools, name=name, limits=READING_LIMITS
        )
    except CompositeError as error:
        problems = (one for one in error.problems if one.code not in _CODES_OF_PINS)
        yield from map(partial(_fault_of, name), problems)
    signature = definition.signature
    declared, taken = set(signature.properties), {p.name for p in program.parameters}
    if declared != taken:
        yield StoreFault(
            place=name,
            code="parameters",
            message=f"{name!r} declares the parameters {sorted(declared)}, its program takes "
            f"{sorted(taken)}",
            advice="recompose it from its text",
        )
    faults, _ = type_check(program, signature.parameters, library.tools, result=signature.result)
    yield from map(partial(_fault_of, name), faults)
    yield from _conditions(definition)
    if not pins:
        children = (library[pin.name].definition for pin in signature.children)
        joined = join_effects(child.signature.effects for child in children)
        if signature.effects != joined:
            yield StoreFault(
                place=name,
                code="effects",
                message=f"{name!r} declares {_in_words(signature.effects)}, its "
                f"children together {_in_words(joined)}",
                advice=f"recompose {name!r} from its text",
            )


def _fault_of(name: str, problem: SourceProblem | Fault) -> StoreFault:
    return StoreFault(place=name, code=problem.code, message=problem.message, advice=problem.advice)


def _conditions(definition: ToolDefinition) -> Iterator[StoreFault]:
    names = tuple(definition.signature.properties)
    conditions = definition.specification
    spoken = [(text, names) for text in conditions.pre]
    spoken += [(text, (*names, "result")) for text in conditions.post]
    for text, known in spoken:
        try:
            parse_expression(text, known)
        except CompositeError as error:
            first = error.problems[0]
            yield StoreFault(
                place=definition.name,
                code="condition",
                message=f"the condition {text!r} cannot be read: {first.message}",
                advice=first.advice,
            )


def _in_words(effects: Effects) -> str:
    words = [name if holds else f"not {name}" for name, holds in effects.to_json().items()]
    return ", ".join(words) or "no effects"
