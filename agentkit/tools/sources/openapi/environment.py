"""Secrets by the names of environment variables, read when a call is made and kept nowhere."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from agentkit.errors import UsageError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Env:
    """The value of an environment variable, named here and read at each call.

    Attributes:
        name: The variable.

    Example:
        >>> Env("PETSTORE_TOKEN")
        Env(name='PETSTORE_TOKEN')
    """

    name: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(str(self.name)):
            # The text is not shown: it may be the secret itself.
            raise UsageError(
                "Env takes the name of an environment variable (letters, digits and _), "
                "not the secret"
            )

    def read(self, environment: Mapping[str, str] | None = None) -> str | None:
        """The value without white space at its ends; None when it is unset or empty."""
        given = (os.environ if environment is None else environment).get(self.name, "")
        return given.strip() or None


@dataclass(frozen=True, kw_only=True, slots=True)
class BasicEnv:
    """User name and password of HTTP's basic scheme, each in a variable of its own.

    Attributes:
        username: The variable that holds the user name.
        password: The variable that holds the password.
    """

    username: Env
    password: Env


Credential: TypeAlias = "Env | BasicEnv"
"""Where a secret comes from. A single ``Env`` for the basic scheme holds ``user:password``."""


def variables_of(credential: Credential) -> Iterator[Env]:
    """The variables that a credential reads."""
    if isinstance(credential, BasicEnv):
        yield from (credential.username, credential.password)
    else:
        yield credential
