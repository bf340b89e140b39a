"""References to results of earlier calls in gold arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_REFERENCE = re.compile(r"\$var\d+[^$]*\$")


def refers(value: Any) -> bool:
    """Whether a value holds a reference to an earlier result, such as ``$var1.id$``, anywhere."""
    if isinstance(value, str):
        return _REFERENCE.search(value) is not None
    if isinstance(value, Mapping):
        return any(map(refers, value.values()))
    return isinstance(value, list | tuple) and any(map(refers, value))
