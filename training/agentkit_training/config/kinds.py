"""Which kind of run a file describes: fine-tuning, or reinforcement learning."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Iterable
from types import MappingProxyType
from typing import Any, TypeVar

from agentkit.errors import UsageError
from agentkit_training.config.jobs import CoevolveConfig, SftConfig
from agentkit_training.config.reading import keys_of, read_config

T = TypeVar("T", SftConfig, CoevolveConfig)

_KINDS = MappingProxyType(
    {
        SftConfig: ("fine-tuning", "agentkit-train sft"),
        CoevolveConfig: ("reinforcement learning", "agentkit-train grpo or coevolve"),
    }
)


def kind_of(
    path: str | os.PathLike[str], *, changes: Collection[str] = ()
) -> type[SftConfig | CoevolveConfig] | None:
    """The record that a file describes, by the sections that only one of them has.

    Args:
        path: The file.
        changes: Changes of single keys, as ``read_config`` takes them.

    Returns:
        None where no section tells; ``CoevolveConfig`` where sections of both are there.

    Raises:
        UsageError: There is no such file, or it is no YAML.
    """
    return kind_of_keys(keys_of(path, changes=changes))


def kind_of_keys(keys: Iterable[str]) -> type[SftConfig | CoevolveConfig] | None:
    """The record that has these sections, see ``kind_of``.

    Example:
        >>> kind_of_keys(["policy", "tasks", "sft"]).__name__
        'SftConfig'
    """
    given = set(keys)
    if given & _own(CoevolveConfig):
        return CoevolveConfig
    return SftConfig if given & _own(SftConfig) else None


def read_run(path: str | os.PathLike[str], kind: type[T], *, changes: Collection[str] = ()) -> T:
    """As ``read_config``; where the file describes the other kind of run, that is what is said.

    Args:
        path: The file.
        kind: What is to be run.
        changes: Changes of single keys.

    Raises:
        UsageError: The file can not be used.
    """
    try:
        return read_config(path, kind, changes=changes)
    except UsageError as error:
        keys = keys_of(path, changes=changes)
        (other,) = set(_KINDS) - {kind}
        if not keys & _own(other) or keys & _own(kind):
            raise
        what, command = _KINDS[other]
        named = ", ".join(sorted(keys & _own(other)))
        raise UsageError(
            f"{path} is a configuration of {what}: it has {named}. Use {command}"
        ) from error


def _own(kind: Any) -> frozenset[str]:
    """The sections that no other kind has."""
    fields = {one: {field.name for field in dataclasses.fields(one)} for one in _KINDS}
    others = set().union(*(names for one, names in fields.items() if one is not kind))
    return frozenset(fields[kind] - others)
