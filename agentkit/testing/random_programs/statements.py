"""Random statements: every name is assigned before it is read, and every path returns."""

from __future__ import annotations

from random import Random

from agentkit.testing.random_programs.children import CHILDREN
from agentkit.testing.random_programs.expressions import Expressions
from agentkit.testing.random_programs.kinds import COMMON, Kind
from agentkit.testing.random_programs.scope import LOOP_NAMES, VARIABLES, Scope

WRITERS = tuple(child for child in CHILDREN if child.writes)
UPDATES: dict[str, tuple[str, ...]] = {
    "int": ("+", "-", "*", "//", "%", "+", "-", "**"),
    "float": ("+", "-", "*", "/", "//", "%"),
    "str": ("+", "+", "*"),
    "bool": ("+", "*"),
    "numbers": ("+", "*"),
}
Lines = list[str]


class Statements:
    """Makes blocks of statements as lines of text.

    A block tells whether it ends every path through it (with return, break or continue), so that
    nothing unreachable is written after it.

    Args:
        random: The source of every choice.
        scope: What is assigned; kept up to date.
        expressions: What the statements compute.
        budget: About how many statements may be made.
    """

    def __init__(
        self, random: Random, scope: Scope, expressions: Expressions, *, budget: int
    ) -> None:
        self._random = random
        self._scope = scope
        self._expressions = expressions
        self._budget = budget
        self._loops = 0

    def body(self) -> Lines:
        """The body of a function: it returns on every path."""
        lines, ended = self.block(depth=3, length=self._random.randint(2, 9))
        return lines if ended else [*lines, self._last_return()]

    def block(self, *, depth: int, length: int) -> tuple[Lines, bool]:
        """Some statements, and whether they end every path."""
        lines: Lines = []
        for _ in range(length):
            made, ended = self._statement(depth)
            lines += made
            if ended:
                return lines, True
        if self._random.random() < 0.03:
            lines.insert(0, "pass")
        return lines or ["pass"], False

    def _statement(self, depth: int) -> tuple[Lines, bool]:
        self._budget -= 1
        choice = self._random.random()
        if depth > 0 and self._budget > 0:
            if choice < 0.17:
                return self._if(depth)
            if choice < 0.29:
                return self._for(depth), False
            if choice < 0.31:
                return self._many_ifs(), False
        if choice < 0.37 and depth < 3:
            return self._jump(), True
        return [self._simple(choice)], False

    # --- simple statements ------------------------------------------------------------------------

    def _simple(self, choice: float) -> str:
        if choice < 0.44:
            return self._bare_call()
        if choice < 0.53:
            return self._unpacking()
        return self._update() if choice < 0.68 else self._assignment()

    def _kind(self) -> Kind:
        return self._random.choice(COMMON)

    def _assignment(self) -> str:
        name, kind = self._scope.new_name(), self._kind()
        known = self._scope.assigned.get(name)
        if known is not None and self._random.random() < 0.7:
            kind = known
        value = self._expressions.make(kind, self._random.randint(1, 3))
        self._scope.assign(name, kind)
        annotation = ": object" if self._random.random() < 0.04 else ""
        return f"{name}{annotation} = {value}"

    def _unpacking(self) -> str:
        make = self._expressions.make
        count = self._random.choice((2, 2, 2, 3))
        names = self._random.sample(VARIABLES, k=count)
        choice = self._random.random()
        kinds: list[Kind] = [self._kind() for _ in names]
        if choice < 0.25 and count == 2:
            kinds, value = ["str", "int"], make("pair", 2)
        elif choice < 0.4 and len(assigned := [*self._scope.assigned]) >= count:
            sources = self._random.sample(assigned, k=count)  # such as a swap
            kinds, value = [self._scope.assigned[name] for name in sources], ", ".join(sources)
        elif choice < 0.42:  # the length fits only sometimes
            kinds, value = ["int"] * count, make("ints", 2)
        else:
            value = ", ".join(make(kind, 1) for kind in kinds)
        for name, kind in zip(names, kinds, strict=True):
            self._scope.assign(name, kind)
        targets = ", ".join(names)
        return f"({targets}) = {value}" if self._random.random() < 0.1 else f"{targets} = {value}"

    def _update(self) -> str:
        known = {name: kind for name, kind in self._scope.assigned.items() if kind in UPDATES}
        if not known:
            return self._assignment()
        name = self._random.choice(list(known))
        operator = self._random.choice(UPDATES[known[name]])
        kind: str = {"*": "small", "**": "exponent"}.get(operator, known[name])
        if self._loops and operator in {"*", "**"}:  # growth in a loop would only meet a limit
            operator, kind = "+", known[name]
        if known[name] == "int" and operator == "+" and self._random.random() < 0.1:
            kind = "bool"
        if self._random.random() < 0.02:
            kind = self._kind()
        value = self._expressions.make(kind, self._random.randint(0, 2))
        if known[name] == "bool" or operator == "/":
            self._scope.assign(name, "int" if known[name] == "bool" else "float")
        return f"{name} {operator}= {value}"

    def _bare_call(self) -> str:
        return self._expressions.call(self._random.choice(WRITERS), 2)

    def _jump(self) -> Lines:
        if self._loops and self._random.random() < 0.65:
            return [self._random.choice(("break", "continue"))]
        return [self._early_return()]

    def _early_return(self) -> str:
        return f"return {self._expressions.make(self._random.choice((*COMMON, 'any')), 2)}"

    def _last_return(self) -> str:
        names = list(self._scope.assigned)
        if not names or self._random.random() < 0.25:
            return self._early_return()
        shown = self._random.sample(names, k=min(len(names), self._random.randint(1, 9)))
        shown.insert(self._random.randint(0, len(shown)), self._expressions.make("any", 1))
        left, right = self._random.choice(("[]", "[]", "()"))
        return f"return {left}{', '.join(shown)}{right}"

    # --- compound statements ----------------------------------------------------------------------

    def _branch(self, depth: int) -> tuple[Lines, bool]:
        return self.block(depth=depth - 1, length=self._random.choice((1, 1, 1, 2, 2, 3)))

    def _if(self, depth: int) -> tuple[Lines, bool]:
        before = self._scope.save()
        lines: Lines = [f"if {self._expressions.test(2)}:"]
        shape = ["if"] + ["elif"] * self._random.choice((0, 0, 0, 1, 1, 2))
        shape += ["else"] if self._random.random() < 0.5 else []
        ends, endings = [], []
        for number, word in enumerate(shape):
            if number:
                self._scope.restore(before)
                test = f" {self._expressions.test(2)}" if word == "elif" else ""
                lines.append(f"{word}{test}:")
            inner, ended = self._branch(depth)
            lines += indented(inner)
            endings.append(ended)
            if not ended:
                ends.append(self._scope.save())
        if shape[-1] != "else":
            ends.append(before)
            endings.append(False)
        if all(endings):
            return lines, True
        self._scope.join(ends)
        return lines, False

    def _for(self, depth: int) -> Lines:
        before = self._scope.save()
        source, kinds = self._expressions.source(2)
        names = self._random.sample((*LOOP_NAMES, *VARIABLES[:4]), k=len(kinds))
        for name, kind in zip(names, kinds, strict=True):
            self._scope.assign(name, kind)
        self._loops += 1
        inner, _ = self._branch(depth)
        if len(inner) == 1 and self._random.random() < 0.5:
            inner = [*self._guarded_jump(), *inner]
        self._loops -= 1
        self._scope.restore(before)
        return [f"for {', '.join(names)} in {source}:", *indented(inner)]

    def _guarded_jump(self) -> Lines:
        """``if ...: break``, at the start of a body, before anything is assigned in it."""
        saved = self._scope.save()
        self._scope.restore({name: kind for name, kind in saved.items() if name in LOOP_NAMES})
        lines = [f"if {self._expressions.test(1)}:", *indented(self._jump())]
        self._scope.restore(saved)
        return lines

    def _many_ifs(self) -> Lines:
        """Sixteen and more ifs one after another, which must join and not multiply."""
        name = self._scope.new_name()
        lines = [f"{name} = {self._expressions.make('int', 1)}"]
        self._scope.assign(name, "int")
        for number in range(self._random.randint(16, 20)):
            lines += [f"if {name} % {number + 2} == {number % 3}:", f"    {name} += {number + 1}"]
        return lines


def indented(lines: Lines) -> Lines:
    """The lines one level deeper."""
    return ["    " + line for line in lines]
