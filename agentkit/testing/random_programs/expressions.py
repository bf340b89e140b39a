"""Random expressions: templates expanded, plus the rules that bind names or call children."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from random import Random
from typing import cast

from agentkit.testing.random_programs.children import CHILDREN, ChildSpec
from agentkit.testing.random_programs.grammar import ALIASES, EVERYWHERE, TEMPLATES
from agentkit.testing.random_programs.kinds import CONCRETE, ELEMENT, KINDS, Kind, sample
from agentkit.testing.random_programs.scope import COMPREHENSION_NAMES, Scope

PLACEHOLDER = re.compile(r"<(@?)([a-z_]+)(?::([a-z_]+))?>")
LIVE = re.compile(r"<live(?::([a-z]+))?>")
BINDING_RULES = ("@list_of", "@generator_of", "@dict")
FORBIDDEN = {"outer": (), "inner": BINDING_RULES, "leaf": ("@", "<test>")}
ALLOWED: Mapping[tuple[str, bool, str], tuple[str, ...]] = {
    (kind, everywhere, place): tuple(
        text.replace("{kind}", kind)
        for text in (EVERYWHERE if everywhere else TEMPLATES[kind])
        if not any(rule in text for rule in forbidden)
    )
    for kind in TEMPLATES
    for everywhere in (False, True)
    for place, forbidden in FORBIDDEN.items()
}
"""The templates of a kind that may stand at a place."""

FIXED_TEXTS = ("", "", "a ", "total: ", "{{", "}}", "é", "it's ", "\\n")
QUOTES = ('"', '"', '"', '"""')


class Expressions:
    """Makes the text of expressions that fit a scope.

    Args:
        random: The source of every choice.
        scope: What may be read.
        mistakes: How often an expression is of another kind than its place wants.
    """

    def __init__(self, random: Random, scope: Scope, *, mistakes: float) -> None:
        self._random = random
        self._scope = scope
        self._mistakes = mistakes
        self._rules: Mapping[str, Callable[[Kind, int], str]] = {
            "call": self._call,
            "call_of": self._call,
            "format": self._format,
            "view": self._view,
            "range": self._range,
            "iterator": self._iterator,
            "iterator_of": self._iterator_of,
            "generator_of": self._generator,
            "list_of": self._list,
            "dict": self._dict,
        }

    def make(self, kind: str, depth: int) -> str:
        """An expression of a kind, with about ``depth`` levels."""
        if kind in ALIASES:
            kind = self._random.choice(ALIASES[kind])
            if kind.startswith("@"):
                return self._rules[kind[1:]]("any", depth)
        if kind in KINDS and self._random.random() < self._mistakes:
            kind = self._random.choice(KINDS)
        if depth <= 0 and kind in KINDS:
            return self._leaf(kind, depth)
        return self._expand(self._template(kind, depth), kind, depth)

    def test(self, depth: int) -> str:
        """A condition that is not constant."""
        return self.make("test", depth)

    def source(self, depth: int) -> tuple[str, tuple[Kind, ...]]:
        """What a loop goes over, with the kinds of the targets to unpack each item into."""
        choice = self._random.random()
        if choice < 0.5:
            kind = self._random.choice(tuple(ELEMENT))
            return self.make(kind, depth), (ELEMENT[kind],)
        if choice < 0.6:
            return self._range("int", depth), ("int",)
        return self._source_of_pairs(choice, depth)

    def _source_of_pairs(self, choice: float, depth: int) -> tuple[str, tuple[Kind, ...]]:
        if choice < 0.7:
            return f"{self.make('table', depth)}.items()", ("str", "int")
        if choice < 0.78:
            return self.make("pairs", depth), ("str", "int")
        if choice < 0.82 and not self._scope.in_comprehension:
            return f"enumerate({self._generator('str', depth)})", ("int", "str")
        if choice < 0.88:
            kind = self._random.choice(tuple(ELEMENT))
            start = self._random.choice(("", "", ", 1", ", start=1"))
            return f"enumerate({self.make(kind, depth)}{start})", ("int", ELEMENT[kind])
        if choice < 0.985:
            left, right = self._random.choices(tuple(ELEMENT), k=2)
            text = f"zip({self.make(left, depth)}, {self.make(right, depth)})"
            return text, (ELEMENT[left], ELEMENT[right])
        kind = self._random.choice(("texts", "nested", "str", "numbers"))
        return self.make(kind, depth), ("any", "any")  # unpacks only sometimes

    def literal(self, kind: Kind) -> str:
        """A constant or a display of constants."""
        text = repr(sample(self._random, kind))
        return f"({text})" if text[0] in "-0123456789" else text

    def _leaf(self, kind: Kind, depth: int) -> str:
        names = self._scope.visible(kind)
        if names and self._random.random() < 0.7:
            return self._random.choice(names)
        if depth == 0 and self._random.random() < 0.15:
            return self._call(kind, depth - 1)
        return self.literal(kind)

    def _template(self, kind: str, depth: int) -> str:
        everywhere = kind in KINDS and self._random.random() < 0.25
        place = "leaf" if depth <= 0 else "inner" if self._scope.in_comprehension else "outer"
        allowed = ALLOWED[kind, everywhere, place]
        for _ in range(4):  # rather a condition on what there is
            template = self._random.choice(allowed)
            wanted = LIVE.search(template)
            if wanted is None or self._scope.visible(cast("Kind", wanted.group(1) or "any")):
                return template
        return self._random.choice(allowed)

    def _expand(self, template: str, kind: str, depth: int) -> str:
        def replaced(match: re.Match[str]) -> str:
            rule, name, argument = match.groups()
            if rule:
                head, _, tail = name.partition("_of_")
                wanted = cast("Kind", tail or kind)
                return self._rules[f"{head}_of" if tail else head](wanted, depth - 1)
            if name in {"name", "live", "word"}:
                return self._named(name, argument or "any", depth - 1)
            return self.make(name, depth - 1)

        text = PLACEHOLDER.sub(replaced, template)
        loose = template[:1] in {"<", "-", "+", "n"} and (" " in template or template[0] in "-+")
        return f"({text})" if loose else text

    def _named(self, role: str, kind: str, depth: int) -> str:
        kind = self._random.choice(ALIASES[kind]) if kind in ALIASES else kind
        names = self._scope.visible(cast("Kind", kind))
        if names:
            return self._random.choice(names)
        if role == "name":
            return self.literal(cast("Kind", kind))
        if role == "live":
            return self._call(cast("Kind", kind), min(depth, 0))
        others = self._scope.visible("any")
        return self._random.choice(others) if others else "(7)"

    # --- rules ------------------------------------------------------------------------------------

    def _call(self, kind: Kind, depth: int) -> str:
        """A call of a child with a result of that kind."""
        kind = "bool" if cast("str", kind) == "test" else kind
        exact = [child for child in CHILDREN if kind in {"any", child.result}]
        if not exact or self._random.random() < 0.1:
            return f"echo({self.make(kind, depth)})"
        return self.call(self._random.choice(exact), depth)

    def call(self, child: ChildSpec, depth: int) -> str:
        """A call of this child: some arguments by position, the others by name in any order."""
        parameters = list(child.parameters.items())
        given = child.required + sum(
            self._random.random() < 0.5 for _ in parameters[child.required :]
        )
        positional = self._random.randint(0, given)
        arguments = [self.make(kind, depth) for _, kind in parameters[:positional]]
        named = [f"{name}={self.make(kind, depth)}" for name, kind in parameters[positional:given]]
        self._random.shuffle(named)
        return f"{child.spelling}({', '.join(arguments + named)})"

    def _format(self, _: Kind, depth: int) -> str:
        quote = self._random.choice(QUOTES)
        pieces = [self._random.choice(FIXED_TEXTS)]
        for _number in range(self._random.randint(1, 3)):
            part = self.make("part", min(depth, 1))
            pieces += ["{" + part + "}", self._random.choice(FIXED_TEXTS)]
        return f"f{quote}{''.join(pieces)}{quote}"

    def _view(self, _: Kind, depth: int) -> str:
        member = self._random.choice(("keys", "keys", "values", "items"))
        return f"{self.make('table', depth)}.{member}()"

    def _range(self, _: Kind, depth: int) -> str:
        small = self._random.choice(("3", "4", "2", "len(<texts>)", "<name:int> % 5", "-1", "0"))
        stop = self._expand(small, "int", depth)
        return self._random.choice(
            (
                f"range({stop})",
                f"range(1, {stop})",
                f"range({stop}, -1, -1)",
                f"range(0, {stop}, 2)",
            )
        )

    def _iterator(self, _: Kind, depth: int) -> str:
        template = self._random.choice(
            ("<@range>", "<@view>", "zip(<ints>, <texts>)", "enumerate(<texts>)", "<texts>")
        )
        return self._expand(template, "any", depth)

    def _iterator_of(self, _: Kind, depth: int) -> str:
        template = self._random.choice(("<@range>", "<table>.values()", "<ints>"))
        return self._expand(template, "ints", depth)

    def _binding(self, depth: int) -> tuple[str, dict[str, Kind]]:
        """``for ... in ...`` of a comprehension."""
        self._scope.in_comprehension = True
        source, kinds = self.source(depth - 1)
        self._scope.in_comprehension = False
        names = self._random.sample(COMPREHENSION_NAMES, k=len(kinds))
        return f"for {', '.join(names)} in {source}", dict(zip(names, kinds, strict=True))

    def _comprehension(self, element: Callable[[], str], depth: int) -> str:
        clause, targets = self._binding(depth)
        self._scope.in_comprehension = True
        with self._scope.comprehension(targets):
            text = f"{element()} {clause}"
            for _ in range(self._random.choice((0, 0, 1, 1, 2))):
                text += f" if {self.test(depth - 1)}"
        self._scope.in_comprehension = False
        return text

    def _inside(self, kind: Kind, depth: int) -> Callable[[], str]:
        return lambda: self.make(kind, depth)

    def _generator(self, kind: Kind, depth: int) -> str:
        return self._comprehension(self._inside(kind, depth), depth)

    def _list(self, kind: Kind, depth: int) -> str:
        return f"[{self._generator(kind, depth)}]"

    def _dict(self, kind: Kind, depth: int) -> str:
        def entry() -> str:
            keys: Kind = "str" if kind != "odd" else self._random.choice(CONCRETE)
            return f"{self.make(keys, depth)}: {self.make('int', depth)}"

        return f"{{{self._comprehension(entry, depth)}}}"
