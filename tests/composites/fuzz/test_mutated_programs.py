"""Random programs with a random fault in their text or data: refused, or still what CPython does.

A mutated text may leave the language in any way; what our reader still takes must be a Python
function that behaves the same. Mutated data may be anything; what is still taken must render to a
text that gives the same program back, and run without surprises.
"""

from __future__ import annotations

import json
import tokenize
from collections import Counter
from collections.abc import Callable, Sequence
from io import StringIO
from random import Random
from typing import Any

import pytest
from support.random_children import GUARDS, ChildrenInUse, Outcome, difference
from support.random_programs import RandomProgram

from agentkit.composites import language as ir
from agentkit.composites.checks import check_program
from agentkit.composites.codec import program_from_json, program_to_json
from agentkit.composites.composite import Composite
from agentkit.composites.parser import parse
from agentkit.composites.problems import RunCode
from agentkit.composites.rendering import render
from agentkit.errors import CompositeError

pytestmark = [pytest.mark.filterwarnings("ignore::SyntaxWarning"), pytest.mark.timeout(0)]

OutcomeOf = Callable[..., Outcome]
SHARE = 3
"""Every third program is mutated."""

WORDS = (
    *("x", "name", "items", "add", "len", "note", "label", "k", "_", "range", "data"),
    *("if", "else", "for", "in", "not", "and", "or", "is", "None", "True", "return", "break"),
    *("continue", "pass", "lambda", "await", "yield", "while", "del", "import", "elif", "async"),
    *("+", "-", "*", "/", "//", "%", "**", "@", "<<", "|", "~", "==", "<", ">=", "=", "+=", ":="),
    *("(", ")", "[", "]", "{", "}", ",", ":", ".", "*", "**", ";", "->", "..."),
    *("0", "1", "1.5", "1j", "'a'", "b'a'", "f'{x}'", "f'{x!r}'", "''", "0x10", "1e400"),
)
CODES = frozenset(RunCode.__args__)  # type: ignore[attr-defined] - a Literal has them


def mutated_text(source: str, random: Random) -> str:
    """The text with one or two tokens taken out, doubled, swapped, or replaced."""
    tokens = list(tokenize.generate_tokens(StringIO(source).readline))
    for _ in range(random.choice((1, 1, 2))):
        place = random.randrange(8, len(tokens))  # behind the name of the function
        other = random.randrange(8, len(tokens))
        kind = tokens[place].type
        choice = random.randrange(5)
        if choice == 0:
            del tokens[place]
        elif choice == 1:
            tokens.insert(place, tokens[place])
        elif choice == 2:
            tokens[place], tokens[other] = tokens[other], tokens[place]
        elif choice == 3:
            tokens[place] = tokens[other]
        elif kind in {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}:
            word = random.choice(WORDS)
            tokens[place] = tokenize.TokenInfo(kind, word, (0, 0), (0, 0), "")
    try:
        return tokenize.untokenize([(token.type, token.string) for token in tokens])
    except (ValueError, IndexError):  # its indentation does not fit
        return source


def test_a_mutated_text_is_refused_or_means_what_it_says(
    batch: Sequence[RandomProgram],
    as_module: Callable[..., Any],
    outcome_of: OutcomeOf,
    counts: Counter[str],
) -> None:
    """Whatever our reader takes runs like the same text in CPython; the rest is refused."""
    ours, theirs, found = ChildrenInUse(), ChildrenInUse(), []
    for program in batch[::SHARE]:
        source = mutated_text(program.source, Random(program.seed))
        try:
            parsed = parse(source, ours.tools)
        except CompositeError as refused:
            counts["mutated text refused"] += 1
            found += [f"no advice: {refused}"] * (not all(p.advice for p in refused.problems))
            continue
        counts["mutated text taken"] += 1
        composite = Composite(parsed.program, ours.by_name, name=parsed.name)
        function = getattr(as_module(theirs.namespace, [source]), parsed.name)
        for case in program.cases:
            actual = outcome_of(ours, composite.run, case)
            if actual.code in GUARDS or actual.code == "invalid_arguments":
                continue
            expected = outcome_of(theirs, function, **case)
            if message := difference(expected, actual):
                found.append(f"seed {program.seed}: {message}\narguments {case!r}\n{source}")
    shown = "\n\n".join(found[:3])
    assert not found, f"{len(found)} differences\n\n{shown}"


def every_place(record: Any) -> list[tuple[Any, Any]]:
    """Each container in a JSON value, with each key or index in it."""
    places, waiting = [], [record]
    while waiting:
        container = waiting.pop()
        keys = list(container) if isinstance(container, dict) else range(len(container))
        places += [(container, key) for key in keys]
        waiting += [container[key] for key in keys if isinstance(container[key], dict | list)]
    return places


SCALARS = (None, True, 0, -1, 1.5, "", "x", "add", "eval", "__class__", "Break", "List", "\ud800")
NODES = ({}, [], {"kind": "Break"}, {"kind": "Constant", "value": 1}, {"kind": "Name", "name": "x"})


def mutate_data(record: dict[str, Any], random: Random) -> None:
    """Change one or two places of a program's JSON."""
    for _ in range(random.choice((1, 1, 2))):
        places = every_place(record)
        container, key = random.choice(places)
        value, choice = container[key], random.random()
        if choice < 0.15:
            del container[key]
        elif choice < 0.25:
            container[key] = random.choice(SCALARS)
        elif choice < 0.35:
            container[key] = json.loads(json.dumps(random.choice(NODES)))
        elif choice < 0.4 and isinstance(container, dict):
            container["extra"] = value
        else:  # something of the same form from elsewhere, which often is a program again
            alike = [other[at] for other, at in places if form(other[at]) == form(value)]
            container[key] = json.loads(json.dumps(random.choice(alike)))


def form(value: Any) -> object:
    """What tells nodes of different kinds apart, roughly."""
    return min(value) if isinstance(value, dict) and value else type(value)


def read_data(record: Any, children: ChildrenInUse) -> ir.Program | None:
    """The program, when neither its form nor the static rules refuse it."""
    try:
        program = program_from_json(record)
    except CompositeError:
        return None
    return None if check_program(program, children.by_name) else program


def test_mutated_data_is_refused_or_a_program(
    batch: Sequence[RandomProgram],
    parsed: Sequence[ir.Program],
    outcome_of: OutcomeOf,
    counts: Counter[str],
) -> None:
    """Whatever is still a program has a text, and runs to a result or to a code."""
    children = ChildrenInUse()
    for random_program, program in zip(batch[::SHARE], parsed[::SHARE], strict=True):
        record = json.loads(json.dumps(program_to_json(program)))
        mutate_data(record, Random(random_program.seed))
        taken = read_data(record, children)
        counts[f"mutated data {'taken' if taken else 'refused'}"] += 1
        if taken is None:
            continue
        text = render(taken, name="f")
        again = parse(text, children.by_name).program
        if not any(isinstance(node, ir.Format) for node in ir.walk(taken)):
            assert repr(again) == repr(taken), text
        composite = Composite(taken, children.by_name, name="f")
        for case in random_program.cases:
            outcome = outcome_of(children, composite.run, case)
            assert outcome.code is None or outcome.code in CODES, (outcome.code, text)


@pytest.mark.parametrize("operator", ["is", "is not"])
def test_data_may_compare_identity_with_none_only(operator: ir.CompareOperator) -> None:
    """Programs that came as data keep the rule that the reader of texts keeps."""
    x, none = ir.Name(name="x"), ir.Constant(value=None)
    call = ir.Call(child="echo", arguments=(ir.Argument(name="value", value=x),))

    def problems(other: ir.Expression) -> list[str]:
        value = ir.Compare(operators=(operator,), operands=(call, other))
        program = ir.Program(parameters=(ir.Parameter(name="x"),), body=(ir.Return(value=value),))
        return [problem.code for problem in check_program(program, ChildrenInUse().by_name)]

    assert problems(x) == ["unknown_construct"]
    assert problems(none) == []
