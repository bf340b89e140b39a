"""Random programs and random edits of their texts, compared with CPython."""

from __future__ import annotations

import json
import tokenize
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from io import StringIO
from random import Random
from typing import Any

import pytest
from support.random_children import GUARDS, ChildrenInUse, Outcome, difference
from support.random_programs import RandomProgram

from agentkit.composites.composite import Composite, program_from_json, program_to_json
from agentkit.composites.language import Program, render
from agentkit.composites.parser import parse
from agentkit.errors import CompositeError

pytestmark = [
    pytest.mark.filterwarnings("ignore::SyntaxWarning"),  # such as None[0], a mistake on purpose
    pytest.mark.timeout(0),
]

OutcomeOf = Callable[..., Outcome]
SHOWN = 3
MOST_GUARDED = 0.05
MOST_REFUSED = 0.1
SHARE_ROUND_TRIPS = 2
SHARE_ASYNC = 4
"""Every fourth program also runs with children that are awaited."""


def fail_with(found: Sequence[str]) -> None:
    """Show the first differences with their programs."""
    shown = "\n\n".join(found[:SHOWN])
    assert not found, f"{len(found)} differences\n\n{shown}"


def report(program: RandomProgram, case: Mapping[str, Any], message: str) -> str:
    """One difference, to be reproduced by its seed."""
    return f"seed {program.seed}: {message}\narguments {dict(case)!r}\n{program.source}"


def test_programs_do_what_cpython_does(
    batch: Sequence[RandomProgram],
    parsed: Sequence[Program],
    as_module: Callable[[Mapping[str, Any], Sequence[str]], Any],
    outcome_of: OutcomeOf,
    counts: Counter[str],
) -> None:
    """Value, failure and calls of children are those of the same function in CPython."""
    ours, theirs = ChildrenInUse(), ChildrenInUse()
    module = as_module(theirs.namespace, [program.source for program in batch])
    found, guarded, runs = [], 0, 0
    for program, body in zip(batch, parsed, strict=True):
        composite = Composite(body, ours.by_name, name=program.name)
        function = getattr(module, program.name)
        for case in program.cases:
            actual = outcome_of(ours, composite.run, case)
            runs += 1
            counts[f"run: {actual.code or 'returned'}"] += 1
            counts["children called"] += len(actual.log)
            if actual.code in GUARDS:
                guarded += 1
                continue
            expected = outcome_of(theirs, function, **case)
            if message := difference(expected, actual):
                found.append(report(program, case, message))
    counts["programs"] += len(batch)
    fail_with(found)
    assert guarded <= MOST_GUARDED * runs


async def test_awaited_children_change_nothing(
    batch: Sequence[RandomProgram],
    parsed: Sequence[Program],
    outcome_of: OutcomeOf,
    outcome_of_awaiting: Callable[..., Awaitable[Outcome]],
    counts: Counter[str],
) -> None:
    """With async children the result and the order of effects stay those of sync children."""
    plain, awaited = ChildrenInUse(), ChildrenInUse(asynchronous=True)
    found, refused = [], 0
    for program, body in zip(batch[::SHARE_ASYNC], parsed[::SHARE_ASYNC], strict=True):
        composite = Composite(body, plain.by_name, name=program.name)
        concurrent = Composite(body, awaited.by_name, name=program.name)
        for case in program.cases:
            expected = outcome_of(plain, composite.run, case)
            if expected.code in GUARDS:
                continue
            actual = await outcome_of_awaiting(awaited, concurrent.run_async, case)
            counts["async run"] += 1
            if actual.code == "CompositeError":  # enumerate or zip of items that are awaited
                refused += 1
                continue
            if message := difference(expected, actual, order="concurrent"):
                found.append(report(program, case, message))
    fail_with(found)
    assert refused <= MOST_REFUSED * len(batch)


def test_programs_come_back_from_text_and_data(
    batch: Sequence[RandomProgram], parsed: Sequence[Program], counts: Counter[str]
) -> None:
    """Rendered text and what a store keeps give the equal program back."""
    tools = ChildrenInUse().by_name
    found = []
    chosen = zip(batch[::SHARE_ROUND_TRIPS], parsed[::SHARE_ROUND_TRIPS], strict=True)
    for random, program in chosen:
        read = program_from_json(json.loads(json.dumps(program_to_json(program))))
        text = render(program, name=random.name)
        again = parse(text, tools).program
        counts["round trip"] += 1
        written = repr(program)  # which tells 1, 1.0 and True apart
        if repr(read) != written or repr(again) != written:
            found.append(
                report(random, {}, f"what is stored, or text, gives another program:\n{text}")
            )
    fail_with(found)


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
