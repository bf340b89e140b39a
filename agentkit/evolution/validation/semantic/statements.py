"""What a sentence is about."""

from __future__ import annotations

import re

from agentkit.evolution.validation.report import ProposedChange
from agentkit.evolution.validation.schema_facts import ParameterFacts
from agentkit.evolution.validation.texts import Edit


def about(change: ProposedChange, edit: Edit, sentence: str) -> ParameterFacts | None:
    """The parameter that a sentence is about: that of its text, or the one that it names."""
    if edit.parameter:
        return change.parameters.get(edit.parameter)
    named = [
        facts
        for path, facts in change.parameters.items()
        if re.search(rf"(?<![\w.]){re.escape(path.casefold())}(?![\w])", sentence)
    ]
    return named[0] if len(named) == 1 else None
