"""Failed assertions of the shipped suites show their values."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite(
    "agentkit.testing.tool_store_conformance",
    "agentkit.testing.event_store_conformance",
    "agentkit.testing.episode_store_conformance",
)
