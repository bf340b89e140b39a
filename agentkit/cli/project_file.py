"""What ``agentkit.toml`` may say, read strictly: a key that nothing knows is an error."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentkit.errors import UsageError
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.gates import GateConfig
from agentkit.retrieval.cascade import CascadeRetriever

TableValue = str | bool | int | float | list[str]
Place = Annotated[str, Field(min_length=1)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class GateTable(_Table):
    """``[gates]``: what a proposal has to go through; see ``LifecyclePolicy`` and ``GateConfig``.

    What is not said has its default there.
    """

    shadow: bool = False
    canary: bool = False
    canary_share: float | None = None
    alpha: float | None = None
    margin: float | None = None
    least_gain: float | None = None
    least_pairs: int | None = None
    least_sessions: int | None = None
    most_uses: int | None = None
    lost_share: float | None = None
    token_growth: float | None = None
    latency_growth: float | None = None  # of earlier releases, as is most_uses; ignored

    @property
    def rules(self) -> GateConfig:
        """The knobs of the comparisons."""
        given = {  # the file keeps the names of its first version
            name.replace("least_", "min_").replace("most_", "max_"): value
            for name, value in self
            if value is not None
        }
        known = {one.name for one in fields(GateConfig)}
        return GateConfig(**{name: value for name, value in given.items() if name in known})

    @property
    def policy(self) -> LifecyclePolicy:
        """The stages."""
        return LifecyclePolicy(
            shadow=self.shadow, canary=self.canary, canary_share=self.canary_share
        )


class RetrievalTable(_Table):
    """``[retrieval]``: how many tools a request is given, and what they may cost."""

    shortlist: int = 32
    offer: int = 5
    token_budget: int = 1600

    @property
    def retriever(self) -> CascadeRetriever:
        """What finds the tools."""
        return CascadeRetriever(
            shortlist=self.shortlist, offer=self.offer, token_budget=self.token_budget
        )


class ProjectFile(BaseModel):
    """The file; ``tables`` are options of single commands."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    store: Place | None = None
    tools: tuple[Place, ...] = Field(default=(), strict=False)
    tasks: Place | None = None
    held_out: Place | None = None
    environment: Place | None = None
    model: Place | None = None
    judge: Place | None = None
    instructions: str | None = None
    gates: GateTable | None = None
    retrieval: RetrievalTable | None = None

    @classmethod
    def read(cls, written: Mapping[str, Any], path: Path) -> Self:
        """The file as read from TOML.

        Raises:
            UsageError: A value is of the wrong kind or out of range, or a key has no meaning.
        """
        try:
            read = cls.model_validate(dict(written))
            if read.gates is not None:
                _ = read.gates.rules, read.gates.policy
            if read.retrieval is not None:
                _ = read.retrieval.retriever
        except ValidationError as error:
            raise UsageError(f"{path}: {_worded(error)}") from error
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from error
        for name, value in (read.model_extra or {}).items():
            if not isinstance(value, dict):
                raise UsageError(f"{path}: {name}: {_no_such(name, cls.model_fields)}")
        return read

    @property
    def tables(self) -> dict[str, dict[str, TableValue]]:
        """Options by command."""
        return dict(self.model_extra or {})


def _worded(error: ValidationError) -> str:
    """The first thing that is wrong, with its place."""
    first = error.errors(include_url=False, include_context=False)[0]
    *table, key = (str(part) for part in first["loc"] if not isinstance(part, int))
    place = "".join(f"[{name}] " for name in table) + key
    if first["type"] == "extra_forbidden":
        keys = GateTable.model_fields if table == ["gates"] else RetrievalTable.model_fields
        return f"{place}: {_no_such(key, keys)}"
    said = first["msg"][:1].lower() + first["msg"][1:]
    return f"{place}: {said}, got {first['input']!r}"


def _no_such(key: str, keys: Iterable[str]) -> str:
    known = list(keys)
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    return f"there is no such key; {hint}"
