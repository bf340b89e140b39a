"""What a text costs in a prompt, as an estimate that needs no tokenizer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from agentkit.errors import UsageError

TokenCounter: TypeAlias = Callable[[str], int]
"""Any function from a text to its number of tokens, such as ``len(encoding.encode(text))``."""

_BYTES_PER_TOKEN = 4


def estimate_tokens(text: str) -> int:
    """The tokens of ``text``, guessed as one for every four bytes of UTF-8, rounded up.

    This is an estimate. On the cards and schemas of four public catalogues the vocabularies
    ``cl100k_base`` and ``o200k_base`` have 4.2 to 4.9 bytes a token, so a budget kept with it is
    kept in reality with 5 to 20% to spare; single texts full of codes and digits go down to 3
    bytes, and scripts that a vocabulary covers badly lower still. Where the exact number matters,
    pass the model's own tokenizer as ``count_tokens``.

    Example:
        >>> estimate_tokens("weather"), estimate_tokens("")
        (2, 0)
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)


def counted(text: str, count_tokens: TokenCounter) -> int:
    """The tokens of ``text`` as a whole number, whatever the counter gives: fractions round up.

    Raises:
        UsageError: The counter gave no number, or one below 0 or without an end.

    Example:
        >>> counted("weather", lambda text: len(text) / 4)
        2
    """
    tokens = count_tokens(text)
    try:
        whole = math.ceil(tokens)
    except (TypeError, ValueError, OverflowError):
        whole = -1
    if whole < 0:
        raise UsageError(
            f"count_tokens gave {tokens!r} for a text of {len(text):,} characters; it must give "
            "the number of tokens, 0 or more"
        )
    return whole
