"""Random programs in the composite language, to compare our interpreter with CPython.

``random_program(seed)`` makes the text and some arguments, over the children of
``support.random_children``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

from agentkit.composites.language import calls
from agentkit.composites.parser import parse
from agentkit.errors import CompositeError
from support.random_children import CHILDREN, ChildrenInUse, ChildSpec

_DEAD = {"dead_call", "possibly_unbound", "unknown_name"}
_ROUNDS = 6
_TOOLS = ChildrenInUse().tools

# --- kinds of values ------------------------------------------------------------------------------

KINDS = (
    *("int", "float", "bool", "str", "none", "ints", "floats", "flags", "texts"),
    *("nested", "pairs", "rows"),  # list[list[int]], list of (str, int), list of records
    *("pair", "numbers"),  # (str, int), tuple of int
    *("table", "record"),  # dict[str, int], {"name": str, "amount": number, "tags": list[str]}
    *("odd", "any"),  # a dict with keys that are no strings, anything
)
"""Rough types: enough that most programs run deep."""

Kind = str
CONCRETE: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind != "any")
JSON_KINDS: tuple[Kind, ...] = tuple(
    kind for kind in CONCRETE if kind not in {"pairs", "pair", "numbers", "odd"}
)
"""What an argument may be: JSON has no tuples, and only strings as keys."""

SCALARS: tuple[Kind, ...] = ("int", "float", "bool", "str", "none")
COMMON: tuple[Kind, ...] = (
    *CONCRETE,
    *("int", "str", "ints", "texts") * 4,
    *("float", "bool", "table", "rows") * 2,
)
"""Kinds as often as variables have them: few enough that an expression finds a variable."""

ELEMENT: Mapping[Kind, Kind] = {
    "ints": "int",
    "floats": "float",
    "flags": "bool",
    "texts": "str",
    "nested": "ints",
    "pairs": "pair",
    "rows": "record",
    "numbers": "int",
    "str": "str",
    "table": "str",
    "record": "str",
    "odd": "any",
}
"""What iteration over a value of a kind gives."""

INTEGERS = (0, 1, 2, 3, 4, 5, 7, -1, -2, 10, 12)
LARGE_INTEGERS = (2**31, 2**53 - 1, 2**53 + 1, -(10**18), 10**30)
FLOATS = (0.5, 2.5, 1.0, -1.5, 0.1, 3.75, 100.0)
ODD_FLOATS = (0.0, -0.0, 1e16, 1e308, -1e308, 5e-324, 1e-7, 2.675)
TEXTS = ("a", "b", "ab", "name", "Hello World", "x,y,,z", "12", "3.5", "to be or not")
ODD_TEXTS = (  # digits of other scripts, a ligature, every kind of line break, and the like
    *("", " 7 ", "1_0", "-0", "nan", "1e3", "ß", "\u0130stanbul", "\ufb01", "\u0663", "\u00b2"),
    *("a\nb\r\nc\x0bd\u2028e", "%s %d", "{x}", 'it\'s "so"', "back\\slash", "\x00", "e\u0301"),
    *("日本", "\U0001f600"),
)
KEYS = ("a", "b", "c", "name", "zz")


def _often(random: Random, usual: tuple[Any, ...], odd: tuple[Any, ...]) -> Any:
    return random.choice(odd if random.random() < 0.12 else usual)


def _list_of(kind: Kind) -> Callable[[Random], list[Any]]:
    def make(random: Random) -> list[Any]:
        return [sample(random, kind) for _ in range(random.choice((0, 1, 2, 2, 3, 3, 3, 4, 4, 5)))]

    return make


def _record(random: Random) -> dict[str, Any]:
    return {
        "name": sample(random, "str"),
        "amount": sample(random, random.choice(("int", "float"))),
        "tags": sample(random, "texts"),
    }


def _odd(random: Random) -> dict[Any, Any]:
    keys = random.sample((0, 1, 2, 1.5, True, None, "a", ("a", 1)), k=random.randrange(4))
    return {key: sample(random, "int") for key in keys}


_SAMPLES: Mapping[Kind, Callable[[Random], Any]] = {
    "int": lambda random: _often(random, INTEGERS, LARGE_INTEGERS),
    "float": lambda random: _often(random, FLOATS, ODD_FLOATS),
    "bool": lambda random: random.random() < 0.5,
    "str": lambda random: _often(random, TEXTS, ODD_TEXTS),
    "none": lambda _: None,
    "ints": _list_of("int"),
    "floats": _list_of("float"),
    "flags": _list_of("bool"),
    "texts": _list_of("str"),
    "nested": _list_of("ints"),
    "pairs": _list_of("pair"),
    "rows": _list_of("record"),
    "pair": lambda random: (sample(random, "str"), sample(random, "int")),
    "numbers": lambda random: tuple(_list_of("int")(random)),
    "table": lambda random: {key: sample(random, "int") for key in KEYS if random.random() < 0.6},
    "record": _record,
    "odd": _odd,
}


def sample(random: Random, kind: Kind) -> Any:
    """A value of a kind."""
    return _SAMPLES[random.choice(CONCRETE) if kind == "any" else kind](random)


def json_sample(random: Random, kind: Kind) -> Any:
    """A value of a kind that JSON can hold; another kind for one that it cannot."""
    return sample(random, kind if kind in JSON_KINDS else random.choice(JSON_KINDS))


def json_kind(random: Random) -> Kind:
    """What a parameter is made for."""
    return random.choice([kind for kind in COMMON if kind in JSON_KINDS])


# --- names ----------------------------------------------------------------------------------------

VARIABLES = (
    *("total", "text", "found", "values", "index", "row", "flag", "table", "left", "acc", "best"),
    *("out", "größe", "x", "y1"),
)
PARAMETERS = ("amount", "name", "data", "limit", "items", "options", "日付")
LOOP_NAMES = ("i", "item", "word", "entry", "position")
COMPREHENSION_NAMES = ("c", "k", "v", "each", "n", "part")
"""Apart from the others, because a comprehension may not reuse a name of the function."""


class Scope:
    """The names that surely hold a value, with the kind of each.

    Attributes:
        in_comprehension: Whether the place is inside a comprehension, where no second one may be.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._kinds: dict[str, Kind] = {}
        self._inner: dict[str, Kind] = {}
        self.in_comprehension = False

    @property
    def assigned(self) -> Mapping[str, Kind]:
        """The parameters and variables that hold a value."""
        return self._kinds

    def visible(self, kind: Kind) -> list[str]:
        """Names of a kind; every name for ``any``."""
        names = self._kinds | self._inner
        return [name for name, found in names.items() if kind in {"any", found}]

    def assign(self, name: str, kind: Kind) -> None:
        """A value of ``kind`` was assigned; another kind than before makes it uncertain."""
        known = self._kinds.get(name, kind)
        self._kinds[name] = kind if known == kind else "any"

    def new_name(self) -> str:
        """A variable, which may be in use already; sometimes a parameter or loop variable."""
        used = list(self._kinds)
        return self._random.choice(used if used and self._random.random() < 0.15 else VARIABLES)

    def save(self) -> dict[str, Kind]:
        """What is assigned here."""
        return dict(self._kinds)

    def restore(self, saved: Mapping[str, Kind]) -> None:
        """Go back to what was assigned there; kinds that changed since are uncertain."""
        self._kinds = {
            name: kind if self._kinds.get(name, kind) == kind else "any"
            for name, kind in saved.items()
        }

    def join(self, branches: list[dict[str, Kind]]) -> None:
        """Only what every branch assigned is assigned after them."""
        first, *others = branches
        self._kinds = {
            name: kind if all(other[name] == kind for other in others) else "any"
            for name, kind in first.items()
            if all(name in other for other in others)
        }

    @contextmanager
    def comprehension(self, targets: Mapping[str, Kind]) -> Iterator[None]:
        """The targets of a comprehension are visible inside it."""
        self._inner = dict(targets)
        try:
            yield
        finally:
            self._inner = {}


# --- expressions ----------------------------------------------------------------------------------


def _table(text: str) -> Mapping[str, tuple[str, ...]]:
    """Choices by name, from lines such as ``name: one | another``."""
    entries = (entry.partition(":") for entry in text.replace("\n  |", " |").strip().split("\n"))
    return {name: tuple(one.strip() for one in rest.split(" | ")) for name, _, rest in entries}


ALIASES = _table("""
number: int | int | float | bool
list: ints | texts | floats | rows | nested | pairs | flags
sequence: ints | texts | floats | rows | nested | pairs | flags | str | numbers
dict: table | record | odd
iterable: ints | texts | floats | flags | str | numbers | table | @iterator
orderable: int | float | str | ints | numbers | bool
""")

TEMPLATES = _table("""
int: <int> + <int> | <int> - <int> | <int> * <int> | <int> // <int> | <int> % <int>
  | <int> ** <exponent> | -<int> | +<int> | <int> + <bool> | len(<sequence>) | len(<dict>)
  | len(<@view>) | len(<@range>) | abs(<int>) | round(<float>) | round(<int>, <digits>)
  | int(<float>) | int(<str>) | int(<bool>) | sum(<ints>) | sum(<flags>) | sum(<ints>, <int>)
  | sum(<@iterator_of_ints>) | min(<int>, <int>) | max(<int>, <int>, <int>) | min(<ints>)
  | max(<ints>, default=<int>) | <ints>[<small>] | <numbers>[<small>] | <pair>[1] | <table>[<key>]
  | <table>.get(<key>, <int>) | <table>.get(<key>, 0) | <str>.count(<str>) | <str>.find(<str>)
  | <str>.index(<str>) | <ints>.count(<int>) | <ints>.index(<int>) | <numbers>.count(<int>)
  | sum(<@generator_of_int>) | max(<@generator_of_int>)
  | min((<@generator_of_int>), default=<int>) | round(<number>, None) | <@call> | <@call>
  | <@call>
float: <number> / <number> | <float> + <number> | <number> - <float> | <float> * <number>
  | <float> // <number> | <float> % <number> | <float> ** <exponent> | -<float> | float(<number>)
  | float(<str>) | abs(<float>) | round(<float>, <digits>) | sum(<floats>)
  | sum(<floats>, <number>) | min(<floats>, default=<float>) | max(<float>, <number>)
  | <floats>[<small>] | <record>['amount'] | sum(<@generator_of_float>) | sum([0.1] * 10)
  | sum(<floats>, 1e16) | float('nan') | float('inf') | <@call> | <@call>
bool: <test> | <test> | bool(<any>) | <bool> == <bool> | <int> < <float> | <@call>
test: <live> == <any> | <live> != <any> | <live:int> < <int> | <int> <= <live:int> < <number>
  | <live:float> > <number> >= <number> != <int> | <live:orderable> >= <orderable>
  | <live:str> <= <str> | <live:ints> < <ints> | <live:int> in <ints>
  | <live:int> not in <numbers> | <str> in <live:str> | <key> in <live:table>
  | <any> in <live:dict> | <live> in [<any>, <any>] | <live> is None | <live> is not None
  | not <test> | <test> and <test> | <test> or <test> or <test> | <test> and not <test>
  | <test> == <test> | <live:bool> | <live> | any(<live:flags>) | all(<live:ints>)
  | isfinite(<live:float>) | is_close(<live:float>, <number>)
  | is_close(<live:float>, <number>, tolerance=<number>) | <live:str>.startswith(<str>)
  | <live:str>.endswith((<str>, <str>)) | <live:str>.isdigit() | <live:str>.isalpha()
  | <@call_of_bool> | <@call_of_bool> | any(<@generator_of_test>) | all(<@generator_of_test>)
  | (<test> if <test> else <test>)
str: <str> + <str> | <str> * <small> | str(<any>) | <str>.upper() | <str>.lower() | <str>.title()
  | <str>.capitalize() | <str>.strip() | <str>.lstrip(<str>) | <str>.rstrip() | <str>.strip(<str>)
  | <str>.lstrip(None) | <str>.replace(<str>, <str>) | <str>.join(<texts>) | ', '.join(<texts>)
  | '-'.join(<str>) | '|'.join(<@generator_of_str>) | '/'.join(<@view>) | <str>[<small>]
  | <str>[<slice>] | <texts>[<small>] | <pair>[0] | <record>['name'] | <record>.get('name', <str>)
  | min(<texts>, default=<str>) | max(<str>, <str>) | <@format> | <@format> | <@call> | <@call>
none: None | None | <table>.get('missing') | <@call> | <@call>
ints: [<int>, <int>] | [<int>, <bool>, <int>] | <ints> + <ints> | <ints> * <small>
  | <small> * <ints> | <ints>[<slice>] | <nested>[<small>] | sorted(<ints>)
  | sorted(<ints>, reverse=<bool>) | sorted(<@generator_of_int>)
  | sorted((<@generator_of_int>), reverse=<bool>) | list(<numbers>) | list(<@range>)
  | list(<table>.values()) | list(<@generator_of_int>) | <@list_of_int> | <@list_of_int>
  | <@list_of_int> | <@call> | <@call>
floats: [<float>, <number>] | <floats> + <ints> | <floats>[<slice>] | sorted(<floats>)
  | <@list_of_float> | <@list_of_float>
flags: [<bool>, <bool>] | <flags>[<slice>] | <@list_of_test> | <@list_of_test>
texts: [<str>, <str>] | <texts> + <texts> | <texts>[<slice>] | <str>.split() | <str>.split(<str>)
  | <str>.split(None) | <str>.split(',') | <str>.splitlines() | sorted(<texts>) | sorted(<str>)
  | sorted(<table>) | sorted(<texts>, reverse=True) | list(<str>) | list(<table>.keys())
  | list(<record>) | <record>['tags'] | <@list_of_str> | <@list_of_str> | <@call> | <@call>
nested: [<ints>, <ints>] | <nested> + [<ints>] | <@list_of_ints> | <nested>[<slice>]
pairs: [<pair>, <pair>] | list(zip(<texts>, <ints>)) | list(<table>.items())
  | sorted(<table>.items()) | list(zip(<str>, <@iterator>)) | <pairs>[<slice>] | <@list_of_pair>
rows: [<record>] | <rows>[<slice>] | <rows> + <rows> | <@list_of_record> | <@call> | <@call>
pair: (<str>, <int>) | <pairs>[<small>] | min(<pairs>) | sorted(<table>.items())[0]
numbers: (<int>, <int>) | (<int>,) | <numbers> + <numbers> | <numbers> * <small>
  | <numbers>[<slice>] | max(<numbers>, <numbers>)
table: {<key>: <int>, <key>: <int>} | {'a': <int>, 'b': <int>, 'c': <int>} | <@dict> | <@dict>
  | <@dict> | <@call> | <@call>
record: {'name': <str>, 'amount': <number>, 'tags': <texts>} | {'name': <str>, 'amount': <number>}
  | <rows>[<small>]
odd: {<number>: <any>, <number>: <any>} | {<pair>: <int>} | {<any>: <any>} | <@dict>
any: <int> | <float> | <str> | <bool> | <none> | <list> | <dict> | <numbers> | <pair>
  | <test> and <any> | list(enumerate(<iterable>)) | list(enumerate(<iterable>, start=<int>))
  | list(enumerate(<sequence>, <int>)) | list(zip(<iterable>, <iterable>, <sequence>))
  | list(<iterable>) | list(enumerate(<@generator_of_str>)) | sorted(zip(<ints>, <texts>))
  | [<any>, <any>] | <@call>
digits: 0 | 1 | 2 | -1 | -2 | None | <flag_or_small>
part: <word> | <word> | <word> | <word:int> + <word:int> | len(<word:texts>)
  | round(<word:float>, 2) | <word:ints>[0] | label(<word>)
  | label(value=<word>, prefix=<word:str>) | is_even(<word:int>) | sum(<word:ints>)
  | <word:table>['a'] | <word:str>.upper() | not <word> | peek() | f'{<word>}!'
key: 'a' | 'b' | 'c' | 'name' | <name:str> | <str>
exponent: 2 | 3 | 0 | -1 | 0.5 | <flag_or_small>
flag_or_small: <name:bool> | True | False | 1
small: 0 | 0 | -1 | 0 | 0 | -1 | 0 | 0 | -1 | 1 | 2 | -2 | <flag_or_small> | <name:int>
bound:  |  |  | None | 0 | 0 | -1 | 0 | 0 | -1 | 0 | 0 | -1 | 1 | 2 | -2 | <flag_or_small>
  | <name:int>
step: -1 | 2 | -2 | 1 | None |  | -1 | 2 | -2 | 1 | None |  | <name:int>
slice: <bound>:<bound> | <bound>:<bound> | <bound>:<bound>:<step> | ::-1 | ::2
""")
"""The expressions of random programs, as templates by kind: ``<int>`` is any expression of that
kind, ``<name:int>`` a name or a literal, ``<live:int>`` a name or a call, ``<word:int>`` a name or a
number, and ``<@rule>`` one of the rules in ``Expressions``."""

EVERYWHERE = (
    "(<{kind}> if <test> else <{kind}>)",
    "<live:{kind}> or <{kind}>",
    "<live:{kind}> and <{kind}>",
    *("<name:{kind}>",) * 4,
    "echo(<{kind}>)",
)
"""Templates that every kind has."""

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
            if wanted is None or self._scope.visible(wanted.group(1) or "any"):
                return template
        return self._random.choice(allowed)

    def _expand(self, template: str, kind: str, depth: int) -> str:
        def replaced(match: re.Match[str]) -> str:
            rule, name, argument = match.groups()
            if rule:
                head, _, tail = name.partition("_of_")
                wanted = tail or kind
                return self._rules[f"{head}_of" if tail else head](wanted, depth - 1)
            if name in {"name", "live", "word"}:
                return self._named(name, argument or "any", depth - 1)
            return self.make(name, depth - 1)

        text = PLACEHOLDER.sub(replaced, template)
        loose = template[:1] in {"<", "-", "+", "n"} and (" " in template or template[0] in "-+")
        return f"({text})" if loose else text

    def _named(self, role: str, kind: str, depth: int) -> str:
        kind = self._random.choice(ALIASES[kind]) if kind in ALIASES else kind
        names = self._scope.visible(kind)
        if names:
            return self._random.choice(names)
        if role == "name":
            return self.literal(kind)
        if role == "live":
            return self._call(kind, min(depth, 0))
        others = self._scope.visible("any")
        return self._random.choice(others) if others else "(7)"

    # --- rules ------------------------------------------------------------------------------------

    def _call(self, kind: Kind, depth: int) -> str:
        """A call of a child with a result of that kind."""
        kind = "bool" if kind == "test" else kind
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


# --- statements -----------------------------------------------------------------------------------

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
        kind = {"*": "small", "**": "exponent"}.get(operator, known[name])
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


# --- programs -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class RandomProgram:
    """A program and some calls of it.

    Attributes:
        seed: What it was made from.
        name: The name of the function.
        source: Its text.
        cases: Arguments to call it with; what has a default may be missing.
    """

    seed: int
    name: str
    source: str
    cases: tuple[Mapping[str, Any], ...]


def random_program(
    seed: int, *, statements: int = 22, mistakes: float = 0.006, cases: int = 3
) -> RandomProgram:
    """A random program in the composite language, over the children of ``ChildrenInUse``.

    It keeps the static rules: names are assigned before they are read, every path returns,
    conditions are not constant, results of children that change nothing are used. Types mostly
    fit, so that it runs deep; some do not, so that exceptions can be compared too.

    Args:
        seed: The same seed gives the same program.
        statements: About how many statements it has at most.
        mistakes: How often an expression is of another type than its place wants.
        cases: How many sets of arguments come with it.

    Returns:
        The program, which is valid Python as well.

    Example:
        >>> random_program(7) == random_program(7)
        True
    """
    random = Random(seed)
    while True:
        program = _attempt(random, seed, statements=statements, mistakes=mistakes, cases=cases)
        if program is not None:
            return program


def _attempt(
    random: Random, seed: int, *, statements: int, mistakes: float, cases: int
) -> RandomProgram | None:
    scope = Scope(random)
    expressions = Expressions(random, scope, mistakes=mistakes)
    kinds = {
        name: json_kind(random)
        for name in random.sample(PARAMETERS, k=random.choice((0, 1, 2, 2, 3, 3, 4, 5)))
    }
    header, optional = _parameters(random, kinds, expressions)
    for name, kind in kinds.items():
        scope.assign(name, kind)
    body = Statements(random, scope, expressions, budget=statements).body()
    name = f"program_{seed}"
    documented = ['"""Made at random."""'] if random.random() < 0.1 else []
    text = "\n".join([f"def {name}({header}):", *indented(documented + body), ""])
    source = _finished(random, text)
    if source is None:
        return None
    arguments = tuple(_arguments(random, kinds, optional) for _ in range(cases))
    return RandomProgram(seed=seed, name=name, source=source, cases=arguments)


def _parameters(
    random: Random, kinds: Mapping[str, Kind], expressions: Expressions
) -> tuple[str, set[str]]:
    """The text between the parentheses, and the names that have a default."""
    header, optional = [], set[str]()
    for name, kind in kinds.items():
        if (kind in SCALARS and random.random() < 0.4) or optional:
            default = kind if kind in SCALARS else random.choice(SCALARS)
            header.append(f"{name}={expressions.literal(default)}")
            optional.add(name)
        else:
            header.append(name)
    return ", ".join(header), optional


def _arguments(random: Random, kinds: Mapping[str, Kind], optional: set[str]) -> dict[str, Any]:
    given = [name for name in kinds if name not in optional or random.random() < 0.6]
    return {
        name: json_sample(random, kinds[name] if random.random() < 0.97 else "any")
        for name in given
    }


def _finished(random: Random, text: str) -> str | None:
    """The text without what the language refuses as dead, sometimes as ``ast`` writes it.

    None when it is outside the language in another way, such as its size, or calls no child.
    """
    lines = text.split("\n")
    for _ in range(_ROUNDS):
        source = "\n".join(lines)
        try:
            parsed = parse(source, _TOOLS)
        except CompositeError as error:
            if not {problem.code for problem in error.problems} <= _DEAD:
                return None
            for problem in error.problems:  # one statement a line
                line = lines[problem.line - 1]
                if line.rstrip().endswith(":"):
                    return None
                lines[problem.line - 1] = line[: len(line) - len(line.lstrip())] + "pass"
            continue
        if not calls(parsed.program):
            return None
        try:
            return source if random.random() < 0.75 else ast.unparse(ast.parse(source)) + "\n"
        except ValueError:  # quotes in an f-string that ``ast`` cannot write
            return source
    return None
