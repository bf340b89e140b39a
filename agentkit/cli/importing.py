"""The rule for names that are taken; it lies with the library, where artifacts are read too."""

from __future__ import annotations

from agentkit.library.conflicts import ConflictPolicy, ImportPlan, plan_import

__all__ = ["ConflictPolicy", "ImportPlan", "plan_import"]
