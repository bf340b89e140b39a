"""How the words of tools change: edit size, meaning, vocabulary, depth, cost and convergence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.evolution.language.depth import Parser, SpacyParser, StanzaParser
    from agentkit.evolution.language.differences import DiffPart, word_diff
    from agentkit.evolution.language.histories import histories_of
    from agentkit.evolution.language.measures import Measures
    from agentkit.evolution.language.records import LanguageReport, ToolLanguage
    from agentkit.evolution.language.report import language_report
    from agentkit.evolution.language.trends import Convergence, convergence

__all__ = [
    "Convergence",
    "DiffPart",
    "LanguageReport",
    "Measures",
    "Parser",
    "SpacyParser",
    "StanzaParser",
    "ToolLanguage",
    "convergence",
    "histories_of",
    "language_report",
    "word_diff",
]

_MODULES = {
    "Convergence": "agentkit.evolution.language.trends",
    "DiffPart": "agentkit.evolution.language.differences",
    "LanguageReport": "agentkit.evolution.language.records",
    "Measures": "agentkit.evolution.language.measures",
    "Parser": "agentkit.evolution.language.depth",
    "SpacyParser": "agentkit.evolution.language.depth",
    "StanzaParser": "agentkit.evolution.language.depth",
    "ToolLanguage": "agentkit.evolution.language.records",
    "convergence": "agentkit.evolution.language.trends",
    "histories_of": "agentkit.evolution.language.histories",
    "language_report": "agentkit.evolution.language.report",
    "word_diff": "agentkit.evolution.language.differences",
}

__getattr__ = lazy_door(__name__, _MODULES)
