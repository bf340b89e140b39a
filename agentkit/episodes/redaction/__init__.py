"""Taking what is personal or secret out of episodes before they are kept.

This is a lazy door: most runs keep episodes as they are, and load none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.episodes.redaction.patterns import PATTERNS, PatternName
    from agentkit.episodes.redaction.redaction import Redaction, change_texts

__all__ = ["PATTERNS", "PatternName", "Redaction", "change_texts"]

__getattr__ = lazy_door(
    __name__,
    {
        "PATTERNS": "agentkit.episodes.redaction.patterns",
        "PatternName": "agentkit.episodes.redaction.patterns",
        "Redaction": "agentkit.episodes.redaction.redaction",
        "change_texts": "agentkit.episodes.redaction.redaction",
    },
)
