"""Our own regular expressions, which run over texts of strangers, are at worst quadratic in them."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
import warnings
from collections.abc import Iterator, Mapping
from re import _constants as codes, _parser as parser
from typing import Any

import pytest

import agentkit

LENGTH = 600
"""Characters: a cubic match takes some hundred million steps, a quadratic one a third of a million."""

SECONDS = 0.4
LETTERS = "a1 A-_.,\"'/\t\n:=@[`|"


def patterns() -> dict[tuple[str, int], str]:
    """Every compiled pattern that a module of the package holds, with where it was found."""
    found: dict[tuple[str, int], str] = {}

    def look(value: Any, where: str, depth: int) -> None:
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
            found.setdefault((value.pattern, value.flags), where)
        elif depth and isinstance(value, list | tuple | set | frozenset):
            for item in value:
                look(item, where, depth - 1)
        elif depth and isinstance(value, Mapping):
            look([*value.keys(), *value.values()], where, depth)
        elif depth and hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
            look([getattr(value, name, None) for name in value.__dataclass_fields__], where, depth)

    for module in pkgutil.walk_packages(agentkit.__path__, "agentkit."):
        try:
            names = vars(importlib.import_module(module.name))
        except ImportError:  # an optional dependency
            continue
        for name, value in [*names.items()]:
            look(value, f"{module.name}.{name}", 3)
    return found


def sample(tree: Any, pick: int) -> str:
    """A text that a parsed pattern matches, more or less; ``pick`` chooses among several."""
    text = ""
    for code, rule in tree:
        if code is codes.LITERAL:
            text += chr(rule)
        elif code is codes.ANY:
            text += "a"
        elif code is codes.NOT_LITERAL:
            text += "b" if rule == ord("a") else "a"
        elif code is codes.IN:
            fitting = [one for one in LETTERS if re.match(_class(rule), one)]
            fitting += [chr(item) for op, item in rule if op is codes.LITERAL]
            text += fitting[pick % len(fitting)] if fitting else "a"
        elif code is codes.BRANCH:
            text += sample(rule[1][pick % len(rule[1])], pick)
        elif code is codes.SUBPATTERN:
            text += sample(rule[3], pick)
        elif code is codes.ATOMIC_GROUP:
            text += sample(rule, pick)
        elif code in {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}:
            text += sample(rule[2], pick) * max(1, min(rule[0], 20))
    return text


def _class(items: Any) -> str:
    """A set of characters as a pattern again."""
    names = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}
    inside = ""
    for code, item in items:
        if code is codes.LITERAL:
            inside += re.escape(chr(item))
        elif code is codes.RANGE:
            inside += f"{re.escape(chr(item[0]))}-{re.escape(chr(item[1]))}"
        elif code is codes.CATEGORY:
            name = str(item).rpartition("_")[2]
            inside += "\\" + (names[name].upper() if "_NOT_" in str(item) else names[name])
    return f"[{'^' if items[0][0] is codes.NEGATE else ''}{inside}]"


def pumps(tree: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """What each open-ended repetition repeats, with a text that leads up to it."""
    for code, rule in tree:
        if code in {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}:
            if rule[1] > LENGTH:
                yield from ((before, sample(rule[2], pick)) for pick in range(2))
            yield from pumps(rule[2], before)
        elif code is codes.SUBPATTERN:
            yield from pumps(rule[3], before)
        elif code is codes.ATOMIC_GROUP:
            yield from pumps(rule, before)
        elif code is codes.BRANCH:
            for branch in rule[1]:
                yield from pumps(branch, before)
        before += sample([(code, rule)], 0)


@pytest.mark.long
def test_no_pattern_is_worse_than_quadratic() -> None:
    """Pumped with what it repeats, with and without what leads there, each pattern ends in time.

    A text that a model or a server writes is bounded to some thousand characters before patterns
    see it, so that a quadratic search takes milliseconds; a cubic one would take a minute.
    """
    slow: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for (pattern, flags), where in patterns().items():
            compiled, tree = re.compile(pattern, flags), parser.parse(pattern, flags)
            texts = {
                start + (pump * LENGTH)[:LENGTH] + end
                for before, pump in pumps(tree)
                for start in ("", before)
                for end in ("", "\0")
                if pump
            }
            for text in texts:
                started = time.process_time()
                compiled.search(text)
                if time.process_time() - started > SECONDS:
                    slow.append(f"{where}: {pattern[:60]!r} on {text[:20]!r}…")
                    break
    assert not slow, "\n".join(slow)
