"""The third layer: whether the words agree with the tool, as far as rules can see that."""

from __future__ import annotations

from agentkit.evolution.validation.report import Check
from agentkit.evolution.validation.semantic.bounds import bounds_agree
from agentkit.evolution.validation.semantic.copying import not_copied
from agentkit.evolution.validation.semantic.examples import examples_fit
from agentkit.evolution.validation.semantic.kinds import types_agree
from agentkit.evolution.validation.semantic.near_copies import no_near_copy
from agentkit.evolution.validation.semantic.presence import parameters_known, presence_agrees
from agentkit.evolution.validation.semantic.promises import no_promises, no_self_promotion
from agentkit.evolution.validation.semantic.purpose import deeds_declared, purpose_kept
from agentkit.evolution.validation.semantic.restrictions import (
    closed_lists_supported,
    restrictions_supported,
)
from agentkit.evolution.validation.semantic.units import units_agree
from agentkit.evolution.validation.semantic.values import values_agree, values_left_open
from agentkit.evolution.validation.semantic.warnings import warnings_kept

SEMANTIC_CHECKS: tuple[Check, ...] = (
    purpose_kept,
    deeds_declared,
    warnings_kept,
    values_agree,
    values_left_open,
    presence_agrees,
    types_agree,
    units_agree,
    bounds_agree,
    restrictions_supported,
    closed_lists_supported,
    parameters_known,
    no_promises,
    no_self_promotion,
    not_copied,
    examples_fit,
    no_near_copy,
)
"""Each holds words against schema, rules, effects or the library. None asks a model."""
