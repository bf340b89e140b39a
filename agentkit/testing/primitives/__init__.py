"""The warm library: 42 small pure tools with complete records, to build composites from.

As many as the paper starts from (CoCoDA, appendix E), and with its names where it gives them
(appendix F: ``add``, ``mul``, ``pow_int``, ``filter_rows``, ``select_column``, ``sum_list``).
What is a composition of these is left out, so that it can be composed: a percentage, a standard
deviation, ``sum_where``.
"""

from __future__ import annotations

from agentkit.library.library import Library
from agentkit.testing.primitives.arithmetic import ARITHMETIC
from agentkit.testing.primitives.dates import DATES
from agentkit.testing.primitives.lists import LISTS
from agentkit.testing.primitives.statistics import STATISTICS
from agentkit.testing.primitives.strings import STRINGS
from agentkit.testing.primitives.tables import TABLES

__all__ = ["primitive_library"]


def primitive_library() -> Library:
    """All primitives, bound to their functions; version 0, for the library is in no store.

    Every definition has its four levels: a signature that declares no effects, words for each
    parameter, pre- and postconditions that can be checked, and at least three worked examples.

    Example:
        >>> library = primitive_library()
        >>> library["add"](a=library["mul"](a=3, b=4), b=1.5)
        13.5
    """
    return Library([*ARITHMETIC, *STATISTICS, *LISTS, *STRINGS, *DATES, *TABLES])
