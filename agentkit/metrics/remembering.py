"""What is worked out from a tool's definition, remembered for the next call of the tool."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


def remembered(*, most: int = 4_096) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Remember what a pure function of a definition gives for the last ``most`` arguments.

    A definition whose schema is no JSON, with NaN for a default, say, has no digest to remember
    it by. For such a one the function is asked each time.
    """

    def wrap(make: Callable[_P, _T]) -> Callable[_P, _T]:
        known = lru_cache(maxsize=most)(make)

        @wraps(make)
        def find(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            try:
                return known(*args, **kwargs)  # type: ignore[arg-type]  # its stubs want Hashable
            except (RecursionError, ValueError):  # no digest, or an error of its own, raised again
                return make(*args, **kwargs)

        return find

    return wrap
