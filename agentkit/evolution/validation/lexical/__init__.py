"""The first layer: what may stand in a text at all, whatever it is about."""

from __future__ import annotations

from agentkit.evolution.validation.lexical.addresses import no_addresses
from agentkit.evolution.validation.lexical.characters import no_invisible_characters
from agentkit.evolution.validation.lexical.directives import no_directives
from agentkit.evolution.validation.lexical.encodings import no_encoded_text
from agentkit.evolution.validation.lexical.lengths import growth_bounded, lengths_kept
from agentkit.evolution.validation.lexical.markup import no_chat_markers, no_markup
from agentkit.evolution.validation.lexical.personal import no_private_data
from agentkit.evolution.validation.lexical.scripts import no_confusables, no_mixed_scripts
from agentkit.evolution.validation.lexical.secrets import no_secrets
from agentkit.evolution.validation.lexical.tool_names import no_other_tools
from agentkit.evolution.validation.report import Check

LEXICAL_CHECKS: tuple[Check, ...] = (
    no_invisible_characters,
    no_mixed_scripts,
    no_confusables,
    lengths_kept,
    growth_bounded,
    no_addresses,
    no_secrets,
    no_private_data,
    no_markup,
    no_chat_markers,
    no_encoded_text,
    no_directives,
    no_other_tools,
)
"""Each reads the changed texts alone. That an answer can be read at all, and is about a known
tool, is for whoever reads the proposer's answer."""
