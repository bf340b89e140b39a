"""Random programs with a random fault in their text or data: refused, or still what CPython does.

A mutated text may leave the language in any way; what our reader still takes must be a Python
function that behaves the same. Mutated data may be anything; what is still taken must render to a
text that gives the same program back, and run without surprises.
"""

from __future__ import annotations

import tokenize
from collections import Counter
from collections.abc import Callable, Sequence
from io import StringIO
from random import Random
from typing import Any

import pytest
from support.random_children import GUARDS, ChildrenInUse, Outcome, difference
from support.random_programs import RandomProgram

from agentkit.composites.composite import Composite
from agentkit.composites.parser import parse
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
