"""Taking what is personal or secret out of episodes before they are kept."""

from __future__ import annotations

from agentkit.episodes.redaction.patterns import PATTERNS, PatternName
from agentkit.episodes.redaction.records import change_texts
from agentkit.episodes.redaction.redaction import Redaction

__all__ = ["PATTERNS", "PatternName", "Redaction", "change_texts"]
