"""The checks, all in view: what is asked of a change, and in which order it is told."""

from __future__ import annotations

from agentkit.evolution.validation.lexical import LEXICAL_CHECKS
from agentkit.evolution.validation.report import Check
from agentkit.evolution.validation.semantic import SEMANTIC_CHECKS
from agentkit.evolution.validation.structural import STRUCTURAL_CHECKS

ALL_CHECKS: tuple[Check, ...] = (*LEXICAL_CHECKS, *STRUCTURAL_CHECKS, *SEMANTIC_CHECKS)
"""Every check of the three layers. Order decides how a report reads, and nothing else."""
