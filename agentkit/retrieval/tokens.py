"""What a text costs in a prompt, as an estimate that needs no tokenizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

TokenCounter: TypeAlias = Callable[[str], int]
"""Any function from a text to its number of tokens, such as ``len(encoding.encode(text))``."""

_BYTES_PER_TOKEN = 4


def estimate_tokens(text: str) -> int:
    """The tokens of ``text``, guessed as one for every four bytes of UTF-8, rounded up.

    This is an estimate. English prose and JSON schemas have about four to five bytes a token in
    the vocabularies of current models, so budgets kept with it are kept in reality too; numbers,
    code full of symbols and scripts that a vocabulary covers badly may cost up to twice as much.
    Where the exact number matters, pass the model's own tokenizer as ``count_tokens``.

    Example:
        >>> estimate_tokens("weather"), estimate_tokens("")
        (2, 0)
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)
