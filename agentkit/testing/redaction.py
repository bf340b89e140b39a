"""Secrets are blotted out before anything is written."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agentkit.episodes.redaction.secrets import KEY_FORMATS
from agentkit.evolution.usage import SECRET_FIELD

REDACTED = "<redacted>"
"""Stands where a secret was."""

_SECRET_VARIABLE = re.compile(r"_(API_KEY|TOKEN|SECRET|PASSWORD)$")
_SHORTEST_SECRET = 8


def environment_secrets() -> list[str]:
    """The values of variables whose names end in _API_KEY, _TOKEN, _SECRET or _PASSWORD."""
    return [
        value
        for name, value in os.environ.items()
        if _SECRET_VARIABLE.search(name) and len(value) >= _SHORTEST_SECRET
    ]


def redactor(secrets: Iterable[str] = ()) -> Callable[[Any], Any]:
    """A function that blots out secrets in JSON data, however deep they lie.

    Args:
        secrets: Texts to blot out, beside everything that has the format of a well-known key.

    Example:
        >>> redactor(["hunter2"])({"text": "my password is hunter2", "n": 1})
        {'text': 'my password is <redacted>', 'n': 1}
    """
    known = sorted({secret for secret in secrets if secret}, key=len, reverse=True)

    def redact(value: Any) -> Any:
        if isinstance(value, str):
            for secret in known:
                value = value.replace(secret, REDACTED)
            return KEY_FORMATS.sub(REDACTED, value)
        if isinstance(value, Mapping):
            return {redact(key): redact(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [redact(item) for item in value]
        return value

    return redact


def without_secret_fields(value: Any) -> Any:
    """JSON data in which fields that are named like secrets hold none.

    Example:
        >>> without_secret_fields({"extra_headers": {"Authorization": "x", "X-Team": "a"}})
        {'extra_headers': {'Authorization': '<redacted>', 'X-Team': 'a'}}
    """
    if isinstance(value, Mapping):
        return {
            key: REDACTED
            if SECRET_FIELD.search(key) and isinstance(item, str)
            else without_secret_fields(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [without_secret_fields(item) for item in value]
    return value
