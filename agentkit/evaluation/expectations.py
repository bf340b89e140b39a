"""What a right answer is, as data: one record for each way of judging.

A task says with one of these what is expected; ``agentkit.evaluation.verifiers`` turns it into the
verifier that judges an episode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, Self, TypeAlias, runtime_checkable

from agentkit.episodes import Verifier
from agentkit.messages import JsonObject
from agentkit.metrics import AllowedCall, Language
from agentkit.tools.definition import ToolDefinition

STRICT: dict[str, Any] = {"extra": "forbid", "strict": True}
"""How pydantic reads a record out of JSON: no other field, no conversion."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldCall:
    """A call that a right answer makes.

    Attributes:
        name: The tool.
        arguments: Its arguments.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    name: str
    arguments: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class AllowedCalls:
    """Exactly these calls, each argument one of its allowed values (BFCL).

    Attributes:
        calls: The gold calls.
        language: What gold values are written in, where they are source text of a language; None
            for plain JSON.
    """

    calls: tuple[AllowedCall, ...]
    language: Language | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ExactCalls:
    """Exactly these calls, in any order, equal under the tools' schemas.

    Attributes:
        calls: The gold calls.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    calls: tuple[GoldCall, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class AnyCall:
    """At least one call; there is no gold call to compare with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NoCall:
    """No call: none of the offered tools fits, so the right answer is words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NumberAnswer:
    """A number in the final answer (GSM8K).

    Attributes:
        value: The number, as text so that no digit is lost.
        tolerance: How far off it may be, relative to ``value`` (absolute where ``value`` is 0).
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    value: str
    tolerance: float = 1e-6


@dataclass(frozen=True, kw_only=True, slots=True)
class TextAnswer:
    """A text in the final answer.

    Attributes:
        text: The text; case and surrounding space do not count.
        match: ``equal``: it is the answer; ``contains``: the answer holds it.
    """

    text: str
    match: Literal["equal", "contains"] = "equal"


@dataclass(frozen=True, kw_only=True, slots=True)
class FinalState:
    """The environment is in the right state afterwards.

    Attributes:
        state: The state, when it is known as data. Parts that it does not name are free.
        calls: Gold calls; run on a fresh copy of the environment, they give the right state
            (as in tau-bench and the multi-turn part of BFCL). Used when ``state`` is None.
        responses: Whether what the gold calls returned must be among what the agent's calls
            returned (BFCL).
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    state: JsonObject | None = None
    calls: tuple[GoldCall, ...] = ()
    responses: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PythonTests:
    """Python code in the final answer that passes tests (HumanEval).

    Attributes:
        prompt: Code that the answer may continue: imports, signature, docstring.
        tests: Code that defines ``check(candidate)``.
        entry_point: Name of the function that is tested.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    prompt: str = ""
    tests: str
    entry_point: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Rubric:
    """Criteria that a model judges, each met or not.

    Attributes:
        criteria: The criteria by name, each a sentence that is true of a right answer.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    criteria: Mapping[str, str]


@runtime_checkable
class CustomExpectation(Protocol):
    """A plugin's own way of judging: a record that brings its verifier along."""

    @property
    def gold_tools(self) -> tuple[str, ...]:
        """The tools that a right answer calls, in the catalogue's names."""

    def verifier(self, definitions: Sequence[ToolDefinition]) -> Verifier:
        """What judges an episode, whose calls go by the names of these tools."""

    def renamed(self, names: Mapping[str, str]) -> Self:
        """The same with other names of tools; a name that is not there stays."""

    def to_json(self) -> tuple[str, Any]:
        """How it is written: one short key, and JSON data."""


Expectation: TypeAlias = (
    AllowedCalls
    | ExactCalls
    | AnyCall
    | NoCall
    | NumberAnswer
    | TextAnswer
    | FinalState
    | PythonTests
    | Rubric
    | CustomExpectation
)
