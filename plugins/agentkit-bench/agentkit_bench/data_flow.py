"""Whether calls pass data on as the gold calls do, whatever the results are called or hold.

NESTFUL (Basu et al., 2024) asks for sequences of calls in which results of earlier calls are
arguments of later ones. Two answers are equal here when a renaming of results turns one into the
other: the same tools, the same literal arguments (canonical, see ``agentkit.metrics.calls``), and
each reference to the matching call and the same place in its result.

NESTFUL's scorer compares texts instead: names of variables and the order of all calls have to be
the gold ones, ``3`` differs from ``3.0``, and "F1 of parameter names" compares ``name = value``.
What is reported here under the same names differs as follows:

* *full sequence match*: equal as above. The order of calls is free where none uses the other.
* *partial sequence match*: the share of calls, of the longer answer, that have a counterpart which
  is equal together with all that it is made from; not the share of positions with equal text.
* *F1 of function names* and *of parameter names*: per answer, names only, with multiplicity.
* *Win rate*, the share of right final answers, needs the calls to be run; a verifier judges that.

A reference that names no earlier call is a problem of its answer, told in words; such an answer is
never equal to another. Answers that hold the same call many times, crossed over in ways that only a
search for graph isomorphisms could tell apart, count as equal.

References are written ``$var1.rows[0].id$``. Reading is strict. A reference is a dollar sign, the
label of a call, steps into its result, and a dollar sign. Steps are ``.name`` and ``[0]``; ``.0``
is read as ``[0]``. A label is one that a call of the answer has, or ``var`` with a number; other
texts between dollar signs (``$20 - US$``) are text. A text may hold several references among words.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit_bench.comparable import (
    CallLike,
    ComparableCall,
    Definitions,
    by_name,
    comparable_call,
    mark_of,
)

# --- references -----------------------------------------------------------------------------------

_STEPS = r"(?:\.\w[^.$\[\]]*|\[[0-9]{1,9}\])*"
_REFERENCE = re.compile(rf"\$(?P<label>[A-Za-z_][A-Za-z0-9_]*)(?P<path>{_STEPS})\$")
_STEP = re.compile(r"\.(\w[^.$\[\]]*)|\[([0-9]{1,9})\]")
_NUMBERED = re.compile(r"var_?\d+", re.ASCII)
_BROKEN = re.compile(r"\$var_?\d+(?![\w])", re.ASCII)

Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """A part of the result of another call.

    Attributes:
        label: The label of that call, as written.
        path: Steps into its result: names and indexes. Empty for the whole result.
    """

    label: str
    path: Path = ()

    def __str__(self) -> str:
        steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return f"${self.label}{steps}$"


Piece: TypeAlias = "str | Reference"


def pieces_of(text: str, labels: Container[str]) -> tuple[Piece, ...]:
    """The text as words and references in turns; a text without references is one piece.

    Example:
        >>> pieces_of("from $var1.place$ to Bonn", ["var1"])
        ('from ', Reference(label='var1', path=('place',)), ' to Bonn')
        >>> pieces_of("$20 - US$30", ["var1"])
        ('$20 - US$30',)
    """
    found: list[Piece] = []
    start = end = 0
    while (match := _REFERENCE.search(text, start)) is not None:
        label = match["label"]
        if label not in labels and _NUMBERED.fullmatch(label) is None:
            start = match.start() + 1
            continue
        if text[end : match.start()]:
            found.append(text[end : match.start()])
        found.append(Reference(label, _steps_of(match["path"])))
        start = end = match.end()
    if text[end:] or not found:
        found.append(text[end:])
    return tuple(found)


def is_broken(piece: Piece) -> bool:
    """Whether words hold the beginning of a reference that does not end as one.

    Example:
        >>> is_broken("$var1.name"), is_broken("$20")
        (True, False)
    """
    return isinstance(piece, str) and _BROKEN.search(piece) is not None


def _steps_of(written: str) -> Path:
    """The steps, without an index 0 before a name: NESTFUL's names into lists mean the first."""
    steps: list[str | int] = []
    for name, index in _STEP.findall(written):
        number = index or name
        step: str | int = int(number) if number.isascii() and number.isdecimal() else name
        if isinstance(step, str) and steps and steps[-1] == 0:
            steps.pop()
        steps.append(step)
    return tuple(steps)


def label_f1(predicted: Iterable[Hashable], gold: Iterable[Hashable]) -> float:
    """F1 of one answer's labels, each counted as often as it occurs; 1 when both have none.

    Example:
        >>> label_f1(["search", "book"], ["search", "search", "pay"])
        0.4
    """
    made, wanted = Counter(predicted), Counter(gold)
    total = made.total() + wanted.total()
    return 2 * (made & wanted).total() / total if total else 1.0


# --- comparing ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class FlowCall:
    """A call whose arguments may refer to results of earlier calls.

    Attributes:
        name: The tool.
        arguments: Its arguments; texts such as ``$var1.rows[0].id$`` refer to results.
        label: What its result is called, with or without a dollar sign; when empty, ``var1`` for
            the first call of the answer, ``var2`` for the second, and so on.
    """

    name: str
    arguments: JsonObject = field(default_factory=dict)
    label: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class DataFlowMatch:
    """How an answer compares with the gold calls.

    Attributes:
        is_full: Full sequence match: the answer is the gold one up to renaming.
        partial: Partial sequence match, from 0 to 1.
        function_f1: F1 of the names of tools.
        parameter_f1: F1 of the names of parameters, each with its tool.
        pairs: Index of gold call and of call, for calls that match with all that they are made
            from.
        problems: References of the answer that lead nowhere.
        gold_problems: The same for the gold calls; nothing can be right then.
    """

    is_full: bool
    partial: float
    function_f1: float
    parameter_f1: float
    pairs: tuple[tuple[int, int], ...] = ()
    problems: tuple[str, ...] = ()
    gold_problems: tuple[str, ...] = ()


def compare_data_flow(
    calls: Sequence[CallLike], gold: Sequence[CallLike], definitions: Definitions
) -> DataFlowMatch:
    """Compare calls that refer to results by name with gold calls that do.

    Args:
        calls: The calls of a model, in order.
        gold: The gold calls, in order.
        definitions: The tools that may be called.

    Example:
        >>> gold = [
        ...     FlowCall(name="find", arguments={"place": "Aker"}),
        ...     FlowCall(name="find", arguments={"place": "Moss"}),
        ...     FlowCall(name="boats", arguments={"a": "$var1.id$", "b": "$var2.id$"}),
        ... ]
        >>> swapped = [
        ...     FlowCall(name="find", arguments={"place": "Moss"}, label="there"),
        ...     FlowCall(name="find", arguments={"place": "Aker"}, label="here"),
        ...     FlowCall(name="boats", arguments={"a": "$here.id$", "b": "$there.id$"}),
        ... ]
        >>> compare_data_flow(swapped, gold, []).is_full
        True
        >>> compare_data_flow(gold[:1], gold, []).partial
        0.3333333333333333
    """
    known = by_name(definitions)
    made, wanted = _read(calls, known), _read(gold, known)
    ids: dict[Hashable, int] = {}
    own, theirs = _origins(made, ids), _origins(wanted, ids)
    pairs = _paired(theirs, own)
    same_wiring = sorted(_wiring(made, own, ids)) == sorted(_wiring(wanted, theirs, ids))
    return _match(made, wanted, pairs, is_full=same_wiring)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Use:
    """A reference at one place of a call's arguments, to the call at ``producer``."""

    producer: int
    path: Path


_Tree: TypeAlias = Any
"""Canonical arguments in which ``_Words`` stand for texts with references."""


@dataclass(frozen=True, slots=True)
class _Words:
    """A text with references, in pieces."""

    pieces: tuple[str | _Use, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Answer:
    """Calls with their references read.

    Attributes:
        calls: The calls.
        trees: For each, its arguments that are not defaults, by name.
        problems: What is wrong with its references.
    """

    calls: tuple[ComparableCall, ...]
    trees: tuple[Mapping[str, _Tree], ...]
    problems: tuple[str, ...]


def _read(calls: Sequence[CallLike], known: Mapping[str, ToolDefinition]) -> _Answer:
    compared = tuple(comparable_call(call, known) for call in calls)
    labels = [_label(call, at) for at, call in enumerate(calls)]
    problems: list[str] = []
    trees = []
    for at, call in enumerate(compared):
        reader = _Reader(call=call.name, at=at, labels=labels, problems=problems)
        if not call.is_readable:
            problems.append(f"call {at + 1} ({call.name}): its arguments can not be read")
        trees.append(
            {
                name: reader.read(call.values[name])
                for name in call.marks.keys() & call.values.keys()
            }
        )
    return _Answer(calls=compared, trees=tuple(trees), problems=tuple(problems))


def _label(call: CallLike, at: int) -> str:
    label = call.label if isinstance(call, FlowCall) else ""
    return label.strip("$") or f"var{at + 1}"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reader:
    """Reads the references in the arguments of one call."""

    call: str
    at: int
    labels: Sequence[str]
    problems: list[str]

    def read(self, value: Any) -> _Tree:
        if isinstance(value, str):
            return self._text(value) if "$" in value else value
        if isinstance(value, Mapping):
            return {key: self.read(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.read(item) for item in value]
        return value

    def _text(self, text: str) -> _Tree:
        pieces = pieces_of(text, self.labels)
        if any(map(is_broken, pieces)):
            self._report(f"{text!r:.80} begins a reference that does not end in a dollar sign")
        if not any(isinstance(piece, Reference) for piece in pieces):
            return text
        return _Words(
            tuple(self._use(piece) if isinstance(piece, Reference) else piece for piece in pieces)
        )

    def _use(self, reference: Reference) -> str | _Use:
        earlier = [at for at in range(self.at) if self.labels[at] == reference.label]
        if earlier:
            return _Use(producer=earlier[-1], path=reference.path)
        when = "a call that is not earlier" if reference.label in self.labels else "no call"
        self._report(f"{reference} refers to {when}")
        return str(reference)

    def _report(self, problem: str) -> None:
        self.problems.append(f"call {self.at + 1} ({self.call}): {problem}")


def _match(
    made: _Answer, wanted: _Answer, pairs: tuple[tuple[int, int], ...], *, is_full: bool
) -> DataFlowMatch:
    longer = max(len(made.calls), len(wanted.calls))
    sound = not made.problems and not wanted.problems
    return DataFlowMatch(
        is_full=is_full and sound,
        partial=len(pairs) / longer if longer else 1.0,
        function_f1=label_f1(_functions(made), _functions(wanted)),
        parameter_f1=label_f1(_parameters(made), _parameters(wanted)),
        pairs=pairs,
        problems=made.problems,
        gold_problems=wanted.problems,
    )


def _functions(answer: _Answer) -> Iterator[str]:
    return (call.name for call in answer.calls)


def _parameters(answer: _Answer) -> Iterator[tuple[str, str]]:
    return ((call.name, name) for call in answer.calls for name in call.given)


def _number(key: Hashable, ids: dict[Hashable, int]) -> int:
    """A small number for a key, the same for equal keys."""
    return ids.setdefault(key, len(ids))


def _origins(answer: _Answer, ids: dict[Hashable, int]) -> list[int]:
    """For each call a number that is equal exactly for calls made from the same in the same way."""
    found: list[int] = []
    for at, (call, tree) in enumerate(zip(answer.calls, answer.trees, strict=True)):
        arguments = frozenset((name, _mark(value, found)) for name, value in tree.items())
        unlike_any = None if call.is_readable else (id(answer), at)
        found.append(_number((call.name, arguments, unlike_any), ids))
    return found


def _mark(tree: _Tree, origins: Sequence[int]) -> Hashable:
    if isinstance(tree, _Words):
        pieces = (
            piece if isinstance(piece, str) else (origins[piece.producer], piece.path)
            for piece in tree.pieces
        )
        return ("words", *pieces)
    if isinstance(tree, dict):
        return ("object", *((key, _mark(tree[key], origins)) for key in sorted(tree)))
    if isinstance(tree, list):
        return ("array", *(_mark(item, origins) for item in tree))
    return mark_of(tree)


def _wiring(answer: _Answer, origins: Sequence[int], ids: dict[Hashable, int]) -> list[int]:
    """Origins refined by who uses each call, and where: one call used twice is not two calls."""
    uses: list[list[Hashable]] = [[] for _ in origins]
    refined = list(origins)
    for at in reversed(range(len(origins))):
        refined[at] = _number(("used", origins[at], tuple(sorted(uses[at], key=repr))), ids)
        for place, use in _uses(answer.trees[at], ()):
            uses[use.producer].append((place, use.path, refined[at]))
    for at, tree in enumerate(answer.trees):
        sources = frozenset((place, refined[use.producer]) for place, use in _uses(tree, ()))
        refined[at] = _number(("made", refined[at], sources), ids)
    return refined


def _uses(
    tree: _Tree, place: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], _Use]]:
    """All references in arguments, with where they stand."""
    if isinstance(tree, _Words):
        for at, piece in enumerate(tree.pieces):
            if isinstance(piece, _Use):
                yield (*place, at), piece
    elif isinstance(tree, Mapping):
        for key, item in tree.items():
            yield from _uses(item, (*place, key))
    elif isinstance(tree, list):
        for at, item in enumerate(tree):
            yield from _uses(item, (*place, at))


def _paired(gold: Sequence[int], made: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Calls of equal origin, in order."""
    waiting: defaultdict[int, list[int]] = defaultdict(list)
    for at in reversed(range(len(made))):
        waiting[made[at]].append(at)
    return tuple((at, waiting[key].pop()) for at, key in enumerate(gold) if waiting[key])
