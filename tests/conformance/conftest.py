"""Failed assertions of the shipped suites show their values."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("agentkit.testing.conformance")
