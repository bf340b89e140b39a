"""What the values of a random program are like, and samples of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Literal, TypeAlias, get_args

Kind: TypeAlias = Literal[
    "int",
    "float",
    "bool",
    "str",
    "none",
    "ints",  # list[int], and so on
    "floats",
    "flags",
    "texts",
    "nested",  # list[list[int]]
    "pairs",  # list of (str, int)
    "rows",  # list of records
    "pair",  # (str, int)
    "numbers",  # tuple of int
    "table",  # dict[str, int]
    "record",  # {"name": str, "amount": number, "tags": list[str]}
    "odd",  # dict with keys that are no strings
    "any",
]
"""A rough type: enough that most programs run deep."""

KINDS: tuple[Kind, ...] = get_args(Kind)
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
ODD_TEXTS = (
    "",
    " 7 ",
    "1_0",
    "-0",
    "nan",
    "1e3",
    "ß",
    "\u0130stanbul",  # lower() makes it longer
    "\ufb01",  # a ligature: upper() gives two letters
    "\u0663",  # an Arabic-Indic digit: int() reads it
    "\u00b2",  # a superscript: isdigit() without being an int
    "a\nb\r\nc\x0bd\u2028e",  # every kind of line break
    "%s %d",
    "{x}",
    'it\'s "so"',
    "back\\slash",
    "\x00",
    "e\u0301",  # two code points, one letter
    "日本",
    "\U0001f600",
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
    """A value of a kind that JSON can hold; another kind for one that it can not."""
    return sample(random, kind if kind in JSON_KINDS else random.choice(JSON_KINDS))


def json_kind(random: Random) -> Kind:
    """What a parameter is made for."""
    return random.choice([kind for kind in COMMON if kind in JSON_KINDS])
