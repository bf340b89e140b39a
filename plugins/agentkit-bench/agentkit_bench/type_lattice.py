"""The type lattice: JSON types, refined by meanings, items, fields and allowed values.

A ``TypeSet`` is a union of ``Alternative``s. Alternatives are ordered by what they allow: an
integer is a number, a date is a string, a list of dates is a list, an object with more known
fields allows fewer objects, and an ``enum`` allows what its values allow. A union is kept without
alternatives that others include, so that equal types are equal objects; join (``|``) and meet
(``&``) then form a distributive lattice, with ``ANY`` at the top and ``NEVER`` at the bottom.

A meaning is what a value is about, beyond its JSON type. Meanings form a forest: one says more than
the one above it (an ``airport`` is a ``place``), and two on different branches exclude each other.
The list is ours, chosen by what the parameters of public catalogues hold; an identifier may name
its owner (``id:hotel``).

A part of a schema that cannot be read as a type is taken as undeclared, never as forbidden:
catalogues hold schemas that contradict themselves, and a type is a hint for finding tools.
Arguments are held against the schema itself (``agentkit.tools.validation``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from types import MappingProxyType
from typing import Any, get_args

from agentkit.errors import UsageError
from agentkit.messages import JsonObject
from agentkit.retrieval.retriever import Slot
from agentkit.tools.schema import JsonType, resolve_local
from agentkit.tools.sources.dialects import read_type_name

BASES: tuple[JsonType, ...] = get_args(JsonType)

_TOP_BASES: tuple[JsonType, ...] = ("string", "number", "boolean", "null", "array", "object")
_WIDER_BASE: Mapping[JsonType, JsonType] = {"integer": "number"}


_FAMILIES = """
moment: date datetime time year month weekday
duration:
place: city country region address airport postal_code
coordinate: latitude longitude
email:
phone:
url:
ip:
id: uuid
language:
currency:
colour:
file_path:
secret:
count:
quantity: money percentage length mass temperature speed area volume age
unit:
"""


def _meanings() -> Iterator[tuple[str, str]]:
    for family in _FAMILIES.split("\n"):
        wide, _, narrow = family.partition(":")
        if wide:
            yield wide, ""
            yield from ((name, wide) for name in narrow.split())


MEANINGS: Mapping[str, str] = MappingProxyType(dict(_meanings()))
"""Each meaning and the wider one above it; an empty text is not a meaning in particular."""

OWNED_ID = "id:"
"""Prefix of the meaning of an identifier that names its owner, as in ``id:hotel``."""


@lru_cache(maxsize=4_096)
def wider(meaning: str) -> tuple[str, ...]:
    """A meaning and all above it, the narrowest first; the last is always the empty one.

    Example:
        >>> wider("airport")
        ('airport', 'place', '')
        >>> wider("id:hotel")
        ('id:hotel', 'id', '')
    """
    line = [meaning]
    while meaning:
        meaning = "id" if meaning.startswith(OWNED_ID) else MEANINGS[meaning]
        line.append(meaning)
    return tuple(line)


def includes(wide: str, narrow: str) -> bool:
    """Whether all that has the meaning ``narrow`` also has the meaning ``wide``."""
    return not wide or wide == narrow or wide in wider(narrow)


def common(left: str, right: str) -> str | None:
    """The meaning of what has both: the narrower one, or None when they exclude each other.

    Example:
        >>> common("place", "city"), common("city", "country")
        ('city', None)
    """
    if includes(left, right):
        return right
    return left if includes(right, left) else None


def _is_meaning(name: str) -> bool:
    """Whether a text names a meaning; the empty text does, and means nothing in particular."""
    return not name or name in MEANINGS or (name.startswith(OWNED_ID) and len(name) > len(OWNED_ID))


@dataclass(frozen=True, kw_only=True, slots=True)
class Alternative:
    """One kind of value.

    Attributes:
        base: Its JSON type.
        meaning: What it is about, one of ``MEANINGS``; empty for anything.
        items: What a list holds; None for anything.
        fields: Fields that an object certainly has, by name, in alphabetical order.
        value: The only value, as canonical JSON text; None for any value.
    """

    base: JsonType
    meaning: str = ""
    items: TypeSet | None = None
    fields: tuple[tuple[str, TypeSet], ...] = ()
    value: str | None = None

    def includes(self, other: Alternative) -> bool:
        """Whether this one allows all that ``other`` allows."""
        if self.value is not None and self.value != other.value:
            return False
        if self.base != other.base and _WIDER_BASE.get(other.base) != self.base:
            return False
        if not includes(self.meaning, other.meaning):
            return False
        if self.items is not None and (other.items is None or not other.items <= self.items):
            return False
        if not self.fields:
            return True
        theirs = dict(other.fields)
        return all(name in theirs and theirs[name] <= kind for name, kind in self.fields)

    def meet(self, other: Alternative) -> Alternative | None:
        """The values both allow; None for none."""
        value = self.value if other.value is None else other.value
        if self.value not in (None, value):
            return None
        base = _common_base(self.base, other.base)
        meaning = common(self.meaning, other.meaning)
        if base is None or meaning is None:
            return None
        if value is not None and _common_base(own := base_of_text(value), base) != own:
            return None
        items = _met(self.items, other.items)
        fields = _met_fields(self.fields, other.fields)
        if fields is None or (items is not None and items.is_never):
            return None
        return Alternative(base=base, meaning=meaning, items=items, fields=fields, value=value)


@dataclass(frozen=True, slots=True)
class TypeSet:
    """A type: the union of its alternatives; immutable, hashable, and equal when it means the same.

    Build one with ``of``, ``list_of``, ``object_with`` or ``one_of``, or read it from a schema
    (``declared_type``) or a value (``type_of_value``).

    Example:
        >>> TypeSet.of("integer") <= TypeSet.of("number") <= ANY
        True
        >>> date = TypeSet.of("string", meaning="date")
        >>> print(date | TypeSet.of("null"), "and", date & TypeSet.of("string"))
        null | string date and string date
        >>> (date & TypeSet.of("integer")).is_never
        True
    """

    alternatives: frozenset[Alternative] = field(default_factory=frozenset)

    @classmethod
    def of(cls, *bases: JsonType, meaning: str = "") -> TypeSet:
        """All values of some JSON types, that have a meaning if one is given.

        Raises:
            UsageError: The type or the meaning does not exist.
        """
        for base in bases:
            if base not in BASES:
                raise UsageError(f"{base!r} is no JSON type; use one of {', '.join(BASES)}")
        if not _is_meaning(meaning):
            raise UsageError(
                f"{meaning!r} is not a known meaning; see agentkit_bench.type_lattice.MEANINGS, or "
                "write an identifier as 'id:owner'"
            )
        return _plain(bases, meaning)

    @classmethod
    def list_of(cls, items: TypeSet) -> TypeSet:
        """Lists whose items are of a type."""
        if items.is_never:
            return NEVER
        known = None if items.is_any else items
        return cls(frozenset([Alternative(base="array", items=known)]))

    @classmethod
    def object_with(cls, fields: Mapping[str, TypeSet]) -> TypeSet:
        """Objects that have at least these fields."""
        if any(part.is_never for part in fields.values()):
            return NEVER
        return cls(frozenset([Alternative(base="object", fields=tuple(sorted(fields.items())))]))

    @classmethod
    def one_of(cls, values: Iterable[Any]) -> TypeSet:
        """Exactly these JSON values, as ``enum`` lists them; lists are compared as a whole."""
        texts = map(json_text, values)
        return cls.union(Alternative(base=base_of_text(text), value=text) for text in texts)

    @classmethod
    def union(cls, alternatives: Iterable[Alternative]) -> TypeSet:
        """The union of alternatives, in the one form that all equal unions have."""
        distinct = frozenset(alternatives)
        return cls(distinct if len(distinct) < 2 else _reduced(distinct))

    @property
    def is_any(self) -> bool:
        """Whether nothing is known; such a type fits everything and says nothing."""
        return self == ANY

    @property
    def is_never(self) -> bool:
        """Whether no value is of this type."""
        return not self.alternatives

    @property
    def bases(self) -> frozenset[JsonType]:
        """The JSON types of its values."""
        return frozenset(one.base for one in self.alternatives)

    @property
    def meanings(self) -> frozenset[str]:
        """The meanings that its alternatives name."""
        return frozenset(one.meaning for one in self.alternatives if one.meaning)

    def without_null(self) -> TypeSet:
        """The type without null, unless null is all that it has."""
        kept = frozenset(one for one in self.alternatives if one.base != "null")
        return TypeSet(kept) if kept and len(kept) < len(self.alternatives) else self

    def with_meaning(self, meaning: str) -> TypeSet:
        """The values that also have a meaning, and null if it is there; else the type itself."""
        empty = [one for one in self.alternatives if one.base == "null"]
        met = [(one, common(one.meaning, meaning)) for one in self.alternatives - set(empty)]
        narrowed = [replace(one, meaning=both) for one, both in met if both is not None]
        return TypeSet.union([*narrowed, *empty]) if narrowed else self

    def __or__(self, other: TypeSet) -> TypeSet:
        return self if self is other else TypeSet.union(self.alternatives | other.alternatives)

    def __and__(self, other: TypeSet) -> TypeSet:
        if self is other:
            return self
        pairs = product(self.alternatives, other.alternatives)
        return TypeSet.union(met for one, two in pairs if (met := one.meet(two)) is not None)

    def __le__(self, other: TypeSet) -> bool:
        theirs = other.alternatives
        return all(
            one in theirs or any(wide.includes(one) for wide in theirs) for one in self.alternatives
        )

    def __lt__(self, other: TypeSet) -> bool:
        return self != other and self <= other

    def __str__(self) -> str:
        if self.is_any:
            return "any"
        kinds: dict[Alternative, list[str]] = {}
        for one in self.alternatives:
            kinds.setdefault(replace(one, value=None), []).append(one.value or "")
        return " | ".join(sorted(_words(kind, texts) for kind, texts in kinds.items())) or "never"


@lru_cache(maxsize=1_024)
def _plain(bases: tuple[JsonType, ...], meaning: str) -> TypeSet:
    return TypeSet.union(Alternative(base=base, meaning=meaning) for base in bases)


def join(types: Iterable[TypeSet]) -> TypeSet:
    """The union of types; ``NEVER`` of none."""
    types = tuple(types)
    if len(types) == 1:
        return types[0]
    return TypeSet.union(one for part in types for one in part.alternatives)


def json_text(value: Any) -> str:
    """A JSON value as the text that all equal values share; 1.0 is the integer 1."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def base_of_text(text: str) -> JsonType:
    """The JSON type of a canonical JSON text."""
    known = _BASE_OF_FIRST.get(text[0])
    if known is not None:
        return known
    return "integer" if text.lstrip("-").isdigit() else "number"


_BASE_OF_FIRST: Mapping[str, JsonType] = {
    '"': "string",
    "[": "array",
    "{": "object",
    "t": "boolean",
    "f": "boolean",
    "n": "null",
}

ANY = TypeSet(frozenset(Alternative(base=base) for base in _TOP_BASES))
"""Every value: the type of what nobody declared."""

NEVER = TypeSet()
"""No value."""


def _common_base(left: JsonType, right: JsonType) -> JsonType | None:
    if left == right or _WIDER_BASE.get(left) == right:
        return left
    return right if _WIDER_BASE.get(right) == left else None


def _met(left: TypeSet | None, right: TypeSet | None) -> TypeSet | None:
    if left is None or right is None:
        return right if left is None else left
    return left & right


def _met_fields(
    left: tuple[tuple[str, TypeSet], ...], right: tuple[tuple[str, TypeSet], ...]
) -> tuple[tuple[str, TypeSet], ...] | None:
    if not left or not right:
        return left or right
    fields = dict(left)
    for name, part in right:
        fields[name] = fields[name] & part if name in fields else part
    if any(part.is_never for part in fields.values()):
        return None
    return tuple(sorted(fields.items()))


def _reduced(alternatives: frozenset[Alternative]) -> frozenset[Alternative]:
    """The same union in normal form: what others include is left out."""
    rivals: dict[str | None, list[Alternative]] = {None: []}
    for one in alternatives:
        rivals.setdefault(one.value, []).append(one)
    return frozenset(
        one
        for one in alternatives
        if not any(
            other is not one and other.includes(one)
            for value in {None, one.value}
            for other in rivals[value]
        )
    )


_MOST_SHOWN = 3


def _words(one: Alternative, texts: list[str]) -> str:
    parts = [one.base, *filter(None, [one.meaning])]
    if one.items is not None:
        parts.append(f"of ({one.items})")
    if one.fields:
        parts.append("with " + ", ".join(name for name, _ in one.fields[:_MOST_SHOWN]))
        if len(one.fields) > _MOST_SHOWN:
            parts.append(f"and {len(one.fields) - _MOST_SHOWN} more")
    if texts != [""]:
        shown = sorted(texts)[:_MOST_SHOWN]
        more = ", …" if len(texts) > _MOST_SHOWN else ""
        parts.append("in {" + ", ".join(shown) + more + "}")
    return " ".join(parts)


# --- what a JSON Schema declares ------------------------------------------------------------------

_DEEPEST = 6
_MOST_PARTS = 400
"""Schemas read for one type; references that multiply each other end there."""

_MOST_FIELDS = 40
_MOST_BRANCHES = 32
"""Alternatives are compared in pairs; a longer ``anyOf`` is taken as undeclared."""

_MOST_VALUES = 64
"""Maximum length of an ``enum``; a longer one counts as its type."""

_WORDS_AND_TYPE = frozenset({"type", "description", "title", "default", "examples"})
_SCALARS: tuple[JsonType, ...] = ("string", "number", "integer", "boolean")

_MEANING_OF_FORMAT: Mapping[str, str] = {
    "date": "date",
    "date-time": "datetime",
    "time": "time",
    "duration": "duration",
    "email": "email",
    "idn-email": "email",
    "uri": "url",
    "url": "url",
    "iri": "url",
    "ipv4": "ip",
    "ipv6": "ip",
    "uuid": "uuid",
    "password": "secret",
}


def declared_type(
    schema: Any, *, root: JsonObject | None = None, is_result: bool = False
) -> TypeSet:
    """The type that a JSON Schema declares.

    A cyclic ``$ref`` ends where it enters itself again: what is below is undeclared.

    Args:
        schema: A JSON Schema 2020-12; anything that is none declares nothing.
        root: The document that ``$ref`` points into; the schema itself by default.
        is_result: Whether values come out of a tool: all properties of an object are then taken to
            be there. Those that go in have the required ones.

    Example:
        >>> print(declared_type({"type": ["string", "null"], "format": "date"}))
        null | string date
        >>> print(declared_type({"enum": ["km", "mile"]}))
        string in {"km", "mile"}
        >>> print(declared_type({"description": "Whatever you like."}))
        any
    """
    document = root if root is not None else schema
    reader = _SchemaReader(
        root=document if isinstance(document, Mapping) else {}, is_result=is_result
    )
    return reader.read(schema, 0, frozenset())


@dataclass(kw_only=True, slots=True)
class _SchemaReader:
    """One run over a schema."""

    root: JsonObject
    is_result: bool
    parts: int = 0

    def read(self, schema: Any, depth: int, followed: frozenset[str]) -> TypeSet:
        """The type of one part, ``depth`` schemas down, behind the references ``followed``."""
        self.parts += 1
        if not isinstance(schema, Mapping) or depth > _DEEPEST or self.parts > _MOST_PARTS:
            return ANY
        if schema.keys() <= _WORDS_AND_TYPE and schema.get("type") in _SCALARS:
            return TypeSet.of(schema["type"])  # most parameters of most catalogues

        def below(part: Any) -> TypeSet:
            return self.read(part, depth + 1, followed)

        found = self._by_type(schema, below)
        for keyword in ("anyOf", "oneOf"):
            if isinstance(branches := schema.get(keyword), list) and branches:
                is_long = len(branches) > _MOST_BRANCHES
                found = _both(found, ANY if is_long else join(map(below, branches)))
        if isinstance(branches := schema.get("allOf"), list):
            for branch in branches:
                found = _both(found, below(branch))
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference not in followed:
            target = resolve_local(self.root, reference)
            found = _both(found, self.read(target, depth + 1, followed | {reference}))
        meaning = _MEANING_OF_FORMAT.get(str(schema.get("format", "")))
        return found.with_meaning(meaning) if meaning and not found.is_any else found

    def _by_type(self, schema: JsonObject, below: Callable[[Any], TypeSet]) -> TypeSet:
        bases = _bases(schema)
        found = join(self._of_base(base, schema, below) for base in bases) if bases else ANY
        values = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if isinstance(values, list) and 0 < len(values) <= _MOST_VALUES:
            found = _both(found, TypeSet.one_of(values))
        return found

    def _of_base(
        self, base: JsonType, schema: JsonObject, below: Callable[[Any], TypeSet]
    ) -> TypeSet:
        if base == "array" and isinstance(schema.get("items"), Mapping):
            listed = TypeSet.list_of(below(schema["items"]))
            return TypeSet.of("array") if listed.is_never else listed
        properties = schema.get("properties")
        if base != "object" or not isinstance(properties, Mapping):
            return TypeSet.of(base)
        names = list(properties) if self.is_result else schema.get("required")
        fields = {
            name: below(properties[name])
            for name in (names[:_MOST_FIELDS] if isinstance(names, list) else ())
            if isinstance(name, str) and name in properties
        }
        return TypeSet.object_with({name: one for name, one in fields.items() if not one.is_never})


def _bases(schema: JsonObject) -> list[JsonType]:
    declared = schema.get("type")
    names = declared if isinstance(declared, list) else [declared]
    bases: list[JsonType] = [base for base in BASES if base in names]
    if bases and len(bases) == len(set(map(str, names))):
        return bases
    if declared is None and isinstance(schema.get("properties"), Mapping):
        return ["object"]
    if declared is None and isinstance(schema.get("items"), Mapping):
        return ["array"]
    return []  # no type, or one that JSON Schema does not know: undeclared


def _both(left: TypeSet, right: TypeSet) -> TypeSet:
    """The intersection of both; where they contradict each other, their union."""
    if left.is_any or right.is_any:
        return right if left.is_any else left
    met = left & right
    return left | right if met.is_never else met


# --- the slots of a plan, and the words of planner models -----------------------------------------

WRITTEN_ALSO: frozenset[tuple[JsonType, JsonType]] = frozenset(
    {
        ("integer", "string"),
        ("number", "string"),
        ("boolean", "string"),
        ("array", "string"),
        ("string", "integer"),
        ("string", "number"),
    }
)
"""JsonType types whose values can be written in another one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TypedSlot:
    """A slot of a plan with its type.

    Attributes:
        name: What the goal calls it; empty when it has no name.
        type: Its type; a value that is known is a type of one value.
        confidence: How sure the type is, between 0 and 1.
    """

    name: str = ""
    type: TypeSet = ANY
    confidence: float = 1.0

    @classmethod
    def of(cls, slot: Slot) -> TypedSlot:
        """The type of a known value, or the one that a planner's words name.

        Example:
            >>> print(TypedSlot.of(Slot(name="hotel_id", value=7, bound=True)).type)
            integer in {7}
        """
        if not slot.bound:
            return cls(name=slot.name, type=named_type(slot.type))
        try:
            return cls(name=slot.name, type=TypeSet.one_of([slot.value]))
        except (ValueError, RecursionError):  # it holds itself, or is too large for JSON text
            return cls(name=slot.name)

    @property
    def is_untyped(self) -> bool:
        """Whether it says nothing that could change a ranking."""
        return self.confidence <= 0 or self.type.is_any


_TEXT: frozenset[JsonType] = frozenset({"string"})
_NUMERIC: frozenset[JsonType] = frozenset({"integer", "number"})
_EITHER: frozenset[JsonType] = _TEXT | _NUMERIC

_WRITTEN_AS: Mapping[str, frozenset[JsonType]] = {
    **dict.fromkeys(["date", "time", "weekday"], _TEXT),
    **dict.fromkeys(["moment", "month", "duration", "coordinate", "id"], _EITHER),
    **dict.fromkeys(["phone", "postal_code", "quantity"], _EITHER),
    **dict.fromkeys(["count", "length", "mass", "speed", "area", "volume"], _NUMERIC),
}
"""JSON types that a meaning is written in; those of the nearest wider meaning, else text."""


@lru_cache(maxsize=1_024)
def written_as(meaning: str) -> frozenset[JsonType]:
    """The JSON types that values of a meaning are written in."""
    return next((_WRITTEN_AS[one] for one in wider(meaning) if one in _WRITTEN_AS), _TEXT)


_LONGEST_WORDS = 80

_LIST = re.compile(r"(?:list|array) of (?P<of>.+)|(?P<before>.+?)(?:\[\]| list| array)")


def named_type(words: str) -> TypeSet:
    """The type that words name; ``ANY`` when they name none that is known.

    Example:
        >>> print(named_type("list of numbers"))
        array of (number)
        >>> print(named_type("number or null"))
        null | number
        >>> sorted(named_type("currency code").meanings), named_type("gizmo").is_any
        (['currency'], True)
    """
    text = " ".join(words[:_LONGEST_WORDS].casefold().replace("_", " ").split()).strip(" .\"'`")
    return join(map(_single, re.split(r"\s*\|\s*|\s+or\s+", text)))


def _single(text: str) -> TypeSet:
    if (match := _LIST.fullmatch(text)) is not None:
        return TypeSet.list_of(_single(match["of"] or match["before"]))
    one = text.removesuffix("s")
    for name in (text, one, text.replace(" ", "_"), *text.split()):  # ``currency code`` is one
        if name in MEANINGS:
            return TypeSet.of(*sorted(written_as(name)), meaning=name)
    words = {"true/false": "boolean", "yes/no": "boolean"}
    return declared_type(read_type_name(words.get(text, text)) or read_type_name(one))
