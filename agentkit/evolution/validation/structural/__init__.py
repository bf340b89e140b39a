"""The second layer: everything that callers and composites rely on stays as it is."""

from __future__ import annotations

from agentkit.evolution.validation.report import Check
from agentkit.evolution.validation.structural.fields import fields_well_formed, parameters_known
from agentkit.evolution.validation.structural.identity import identity_kept, something_changed
from agentkit.evolution.validation.structural.rules import first_example_kept, rules_valid
from agentkit.evolution.validation.structural.schema import contract_kept, effects_kept, result_kept

STRUCTURAL_CHECKS: tuple[Check, ...] = (
    fields_well_formed,
    something_changed,
    identity_kept,
    contract_kept,
    result_kept,
    effects_kept,
    parameters_known,
    rules_valid,
    first_example_kept,
)
"""Each compares the candidate with the base; none reads the words."""
