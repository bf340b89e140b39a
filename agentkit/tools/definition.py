"""``ToolDefinition``: what the model and the retriever see of a tool, in four levels.

The levels are those of CoCoDA (section 3.1): L1 signature, L2 description, L3 specification,
L4 examples. Evolution may edit L2 and the learned rules of L3; L1 is the contract. A definition is
immutable and its identity is the digest over its canonical JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, get_args

from agentkit.errors import DefinitionError
from agentkit.messages import JsonObject
from agentkit.tools import rules as learned  # a door: it loads when a tool has some
from agentkit.tools.canonical import digest
from agentkit.tools.schema import (
    MAX_DEPTH,
    attach_descriptions,
    check_bounds,
    copied,
    detach_descriptions,
)

if TYPE_CHECKING:
    from agentkit.tools.rules.records import Rule

FORMAT_VERSION = 4
"""Newest version of the JSON form of a definition. Each is written in the oldest version that holds
all of it, so that what needs nothing new keeps its JSON and its digest: 2 has learned rules, 4
discovered parameters."""

INSTRUCTIONS = "instructions"
"""The kind of origin of an agent's instructions, whose names are ``instructions/NAME``."""


def is_instructions(name: str) -> bool:
    """Whether a definition of this name holds an agent's instructions, and is no tool.

    Example:
        >>> is_instructions("instructions/support"), is_instructions("instructions")
        (True, False)
    """
    return name.startswith("instructions/")


EffectName = Literal["reads", "writes", "destructive", "idempotent", "open_world"]


_LONGEST_SHOWN = 200
"""Characters of the arguments of a worked call that models are shown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Effects:
    """The effects of running a tool, in the terms of MCP's tool annotations.

    None means "not declared": such a tool is treated as one that may write, and is not treated
    as destructive.

    Attributes:
        reads: Looks at state outside the call.
        writes: Changes state outside the call.
        destructive: May delete or overwrite, or spend money; needs approval by default.
        idempotent: A second identical call changes nothing more.
        open_world: Talks to systems beyond the application's own.
    """

    reads: bool | None = None
    writes: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None

    @classmethod
    def of(cls, names: Iterable[EffectName]) -> Effects:
        """Effects from the names that hold; ``reads`` alone also declares ``writes=False``.

        Raises:
            DefinitionError: A name is not an effect.
        """
        selected = set(names)
        unknown = selected - set(get_args(EffectName))
        if unknown:
            raise DefinitionError(
                f"unknown effects {sorted(unknown)}; use some of {list(get_args(EffectName))}"
            )
        declared: dict[str, bool] = dict.fromkeys(selected, True)
        if "reads" in selected and not selected & {"writes", "destructive"}:
            declared["writes"] = False
        if "destructive" in selected:
            declared["writes"] = True
        return cls(**declared)

    @classmethod
    def pure(cls) -> Effects:
        """Nothing outside the call is touched: running it again, or not at all, is the same.

        Only such tools are run when a composite is tried out, see ``agentkit.evolution``.

        Example:
            >>> from agentkit import tool
            >>> @tool(effects=Effects.pure())
            ... def double(x: float) -> float:
            ...     '''Twice a number.'''
            ...     return 2 * x
            >>> double.definition.signature.effects.is_read_only
            True
        """
        return cls(reads=False, writes=False, destructive=False, idempotent=True, open_world=False)

    @property
    def is_read_only(self) -> bool:
        """Whether the tool is known not to change anything."""
        return self.writes is False and not self.destructive

    def freer_than(self, known: Effects) -> frozenset[str]:
        """The effects of which these claim more freedom than is known.

        To change nothing, or to bear repeating, is freedom; to declare nothing lies between.

        Example:
            >>> Effects.pure().freer_than(Effects(writes=True, reads=False)) == {
            ...     "writes", "destructive", "idempotent", "open_world"
            ... }
            True
        """
        rank = {True: 0, None: 1, False: 2}
        by_name = {
            name: rank[getattr(self, name)] - rank[getattr(known, name)]
            for name in get_args(EffectName)
        }
        by_name["idempotent"] *= -1
        return frozenset(name for name, more in by_name.items() if more > 0)

    def to_json(self) -> dict[str, bool]:
        """Declared effects only."""
        values = {name: getattr(self, name) for name in get_args(EffectName)}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, kw_only=True, slots=True)
class ChildReference:
    """A child of a composite, pinned to one revision."""

    name: str
    digest: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Signature:
    """L1: the contract that callers and composites rely on.

    Attributes:
        parameters: JSON Schema 2020-12 of the arguments object, without property descriptions
            (those are L2, see ``Description.parameters``).
        result: JSON Schema of the returned value; None when undeclared.
        effects: What running the tool does to the world.
        children: Pinned tools that a composite calls; empty for a primitive.
    """

    parameters: JsonObject = field(default_factory=lambda: {"type": "object", "properties": {}})
    result: JsonObject | None = None
    effects: Effects = field(default_factory=Effects)
    children: tuple[ChildReference, ...] = ()

    @property
    def properties(self) -> Mapping[str, JsonObject]:
        """Schema of each parameter by name, in declared order."""
        properties: Mapping[str, JsonObject] = self.parameters.get("properties", {})
        return properties

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the parameters that a call must give."""
        return tuple(self.parameters.get("required", ()))


@dataclass(frozen=True, kw_only=True, slots=True)
class Description:
    """L2: the words. This is what evolution may edit.

    Attributes:
        summary: What the tool does and when to use it.
        tags: Free labels.
        parameters: Text per parameter; a nested one is keyed by its dotted path (``address.city``,
            ``items[].sku``).
        usage_rules: One rule a sentence, shown after the summary.
    """

    summary: str = ""
    tags: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    usage_rules: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Specification:
    """L3: what holds before and after a call.

    Attributes:
        pre: Expressions over the parameters, in the composite language.
        post: Expressions over the parameters and ``result``.
        text: Conditions in words; they rank, they never gate.
        complexity: Cost in words, such as ``O(n log n)`` or ``two database reads``.
        rules: What was learned about calls beyond the contract, see ``agentkit.tools.rules``. They
            narrow the offered schema, are shown to models, and refuse calls that break them.
    """

    pre: tuple[str, ...] = ()
    post: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    complexity: str = ""
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """L4: one worked call.

    Attributes:
        arguments: The arguments given.
        result: The value returned, or the recorded stub value of an effectful tool.
        query: The request that led to this call, if known.
        is_whole: Whether ``result`` is what came back. Without it, because it was too long to keep
            or could not be tried, the example says what the tool is asked for: retrieval reads
            it, and nothing is run or answered by it.
    """

    arguments: JsonObject
    result: Any = None
    query: str = ""
    is_whole: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """The origin of a definition.

    Attributes:
        kind: ``function``, ``pydantic``, ``json_schema``, ``openapi``, ``mcp``, ``composite``,
            ``agent``; or ``instructions``, which are no tool.
        reference: Module path, file or URL.
        original: The parameters schema as received, kept when normalising changed it.
        original_name: The name as received, kept when it had to be changed.
        licence: SPDX expression of the source, when known.
    """

    kind: str = "function"
    reference: str = ""
    original: JsonObject | None = None
    original_name: str | None = None
    licence: str | None = None


@dataclass(frozen=True, kw_only=True)
class ToolDefinition:
    """Everything that is known about a tool except how it runs.

    The instructions of an agent are kept in the same form, with a text and nothing else.

    Attributes:
        name: Unique within a library. Any text; adapters map it to what a provider accepts.
        signature: L1, the contract.
        description: L2, the words.
        specification: L3, conditions.
        examples: L4, worked calls.
        body: The program of a composite as JSON (``agentkit.composites.composite``); None for a
            primitive.
        origin: Where it came from; not part of the digest.

    Example:
        >>> double = ToolDefinition.from_schema(
        ...     "double",
        ...     "Twice a number.",
        ...     {
        ...         "type": "object",
        ...         "properties": {"x": {"type": "number", "description": "The number."}},
        ...         "required": ["x"],
        ...     },
        ... )
        >>> double.description.parameters["x"]
        'The number.'
        >>> len(double.digest)
        64
    """

    name: str
    signature: Signature = field(default_factory=Signature)
    description: Description = field(default_factory=Description)
    specification: Specification = field(default_factory=Specification)
    examples: tuple[Example, ...] = ()
    body: JsonObject | None = None
    origin: Origin = field(default_factory=Origin, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise DefinitionError(f"the name of a tool is text; got {self.name!r:.80}")
        if not self.name.strip():
            raise DefinitionError("a tool needs a name; got an empty one")
        if is_instructions(self.name) != (self.origin.kind == INSTRUCTIONS):
            raise DefinitionError(
                f"the tool {self.name[:80]!r} has a name of instructions; those alone are called "
                "instructions/NAME, so give the tool another name",
                tool_name=self.name,
            )

    @classmethod
    def from_schema(
        cls,
        name: str,
        description: str,
        parameters: JsonObject,
        *,
        result: JsonObject | None = None,
        effects: Effects | None = None,
        tags: Iterable[str] = (),
        origin: Origin | None = None,
    ) -> ToolDefinition:
        """A definition from a well-formed JSON Schema whose properties carry descriptions.

        Schemas found in the wild go through ``agentkit.tools.definition_from_json``,
        which also normalises dialects. The schemas are copied.

        Raises:
            DefinitionError: Name or description are no text, or the parameters are no schema of an
                object with named properties, or a schema is too expensive to walk or
                holds what JSON cannot.
        """
        _check_outline(name, description, parameters)
        check_bounds(parameters, max_depth=MAX_DEPTH)
        check_bounds(result, max_depth=MAX_DEPTH)
        own, given, labels = copied(parameters), copied(result), tuple(tags)
        _check_writable(name, [name, description, own, given, labels])
        bare, texts = detach_descriptions(own)
        return cls(
            name=name,
            signature=Signature(parameters=bare, result=given, effects=effects or Effects()),
            description=Description(summary=description, tags=labels, parameters=texts),
            origin=origin or Origin(kind="json_schema"),
        )

    @property
    def is_composite(self) -> bool:
        """Whether the tool is a program over other tools rather than code of its own."""
        return self.body is not None

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the canonical JSON of the four levels and the name (RFC 8785)."""
        record = self.to_json()
        record.pop("origin", None)
        return digest(record)

    @property
    def worked_calls(self) -> tuple[Example, ...]:
        """The examples whose result is known: what a tool is tried on, and answered from."""
        return tuple(example for example in self.examples if example.is_whole)

    @cached_property
    def parameters_schema(self) -> JsonObject:
        """The JSON Schema as a model reads it: L1 with the words of L2, narrowed by the rules.

        Calls are held to ``signature.parameters``, the contract; this is never wider.
        """
        described = attach_descriptions(
            self.known_signature.parameters, self.description.parameters
        )
        rules = self.specification.rules
        return learned.narrowed_schema(described, rules) if rules else described

    @cached_property
    def known_signature(self) -> Signature:
        """The contract with the parameters that were discovered, without words and other rules."""
        rules = [rule for rule in self.specification.rules if getattr(rule, "kind", "") == "takes"]
        if not rules:
            return self.signature
        parameters = learned.narrowed_schema(self.signature.parameters, rules)
        return replace(self.signature, parameters=parameters)

    @property
    def text(self) -> str:
        """The summary, the usage rules and the learned rules in words, as a model reads them.

        Discovered parameters are left out: the schema says all of them.
        """
        words = [self.description.summary, *self.description.usage_rules]
        rules = (rule for rule in self.specification.rules if getattr(rule, "kind", "") != "takes")
        words += [learned.rule_sentence(rule) for rule in rules]
        return "\n".join(words).strip()

    def shown_examples(self, most: int) -> tuple[JsonObject, ...]:
        """The arguments of its first worked calls that are short, for models to read.

        Args:
            most: How many.

        Example:
            >>> calls = tuple(Example(arguments={"days": days}) for days in (1, 2))
            >>> ToolDefinition(name="forecast", examples=calls).shown_examples(1)
            ({'days': 1},)
        """
        short = (
            one.arguments
            for one in (self.examples if most else ())
            if len(json.dumps(one.arguments, ensure_ascii=False, default=str)) <= _LONGEST_SHOWN
        )
        return tuple(islice(short, most))

    def __hash__(self) -> int:
        return hash((self.name, self.digest))

    @property
    def _format(self) -> int:
        """The oldest format that says all of it, so that digests stay what they were."""
        rules = self.specification.rules
        if any(getattr(rule, "kind", "") == "takes" for rule in rules):
            return 4
        if any(getattr(rule, "measure", "value") != "value" for rule in rules):
            return 3
        return 2 if rules else 1

    def to_json(self) -> dict[str, Any]:
        """The definition as a JSON object with its format version; empty parts are left out."""
        return {"format": self._format, **_record(self)}

    @classmethod
    def from_json(cls, record: JsonObject) -> ToolDefinition:
        """The inverse of ``to_json``.

        Raises:
            DefinitionError: The record is not a definition, or its format is newer than ours.
        """
        name = record.get("name", "?")
        try:
            if record.get("format", FORMAT_VERSION) > FORMAT_VERSION:
                raise DefinitionError(
                    f"definition {name!r} has format {record['format']}, this agentkit reads up "
                    f"to {FORMAT_VERSION}; upgrade agentkit-evolve",
                    tool_name=name,
                )
            return cls(
                name=record["name"],
                signature=_signature_from_json(record.get("signature", {})),
                description=Description(**_tupled(record.get("description", {}))),
                specification=(
                    _specification_from_json(record["specification"])
                    if "specification" in record
                    else _NO_SPECIFICATION
                ),
                examples=tuple([Example(**example) for example in record.get("examples", ())]),
                body=record.get("body"),
                origin=Origin(**record["origin"]) if "origin" in record else _NO_ORIGIN,
            )
        except (AttributeError, KeyError, TypeError) as error:
            raise DefinitionError(
                f"not a tool definition ({type(error).__name__}: {error}): {str(record)[:200]}",
                tool_name=name,
            ) from error


_LEVELS = (Signature, Description, Specification, Origin, Effects, ChildReference)
_EMPTY: tuple[object, ...] = (None, "", [], {})


def _record(part: Any) -> dict[str, Any]:
    """A part as JSON, without what is empty: so the digest does not move when a field is added."""
    values = ((name, _data(getattr(part, name))) for name in part.__dataclass_fields__)
    is_contract = isinstance(part, Signature)
    return {
        name: value
        for name, value in values
        if value not in _EMPTY or (is_contract and name == "parameters")
    }


def _data(value: Any) -> Any:
    if value is None or isinstance(value, str | dict):  # most parts
        return value
    if isinstance(value, tuple):
        return [*map(_data, value)]
    if isinstance(value, _LEVELS):
        return _record(value)
    if isinstance(value, Example):
        return _example_to_json(value)
    return learned.rule_to_json(value) if hasattr(value, "__dataclass_fields__") else value


# What most definitions of a large library lack: one of each is enough.
_NO_EFFECTS = Effects()
_NO_SPECIFICATION = Specification()
_NO_ORIGIN = Origin()


def _signature_from_json(record: JsonObject) -> Signature:
    return Signature(
        parameters=record.get("parameters", {"type": "object", "properties": {}}),
        result=record.get("result"),
        effects=Effects(**record["effects"]) if "effects" in record else _NO_EFFECTS,
        children=tuple([ChildReference(**child) for child in record.get("children", ())]),
    )


def _specification_from_json(record: JsonObject) -> Specification:
    parts = _tupled(record)
    if rules := parts.get("rules"):
        parts["rules"] = tuple(learned.rule_from_json(rule) for rule in rules)
    return Specification(**parts)


def _example_to_json(example: Example) -> dict[str, Any]:
    record: dict[str, Any] = {"arguments": dict(example.arguments)}
    if example.result is not None:  # an empty string or list is a result worth keeping
        record["result"] = example.result
    if example.query:
        record["query"] = example.query
    if not example.is_whole:
        record["is_whole"] = False
    return record


def _tupled(record: JsonObject) -> dict[str, Any]:
    return {
        key: tuple(value) if isinstance(value, list) else value for key, value in record.items()
    }


def _check_outline(name: str, description: object, parameters: object) -> None:
    """Refuse what is not a schema at all, before it fails in the middle of something else."""
    parts: list[tuple[str, object, type | UnionType]] = [
        ("its name", name, str),
        ("its description", description, str),
        ("its parameters", parameters, Mapping),
    ]
    if isinstance(parameters, Mapping):
        parts.append(("`properties`", parameters.get("properties", {}), Mapping))
        parts.append(("`required`", parameters.get("required", []), list | tuple))
    for what, given, wanted in parts:
        if not isinstance(given, wanted):
            raise DefinitionError(
                f"the tool {name!r} is not usable: {what} is {given!r:.80}; write the description "
                "as text and the parameters as the JSON Schema of an object, or read tools found "
                "in the wild with agentkit.tools.definition_from_json",
                tool_name=name,
            )


def _check_writable(name: str, parts: list[object]) -> None:
    """Refuse what has no digest: NaN, half a surrogate pair, thousands of digits, an open file."""
    try:
        json.dumps(parts, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise DefinitionError(
            f"the tool {name!r} cannot be written as JSON: {error}", tool_name=name
        ) from error
