"""Fixtures of the plugin: commands run as a user does, in an empty folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from agentkit.cli.main import main


@pytest.fixture(scope="session")
def project_root() -> Path:
    """The folder of the checkout."""
    return Path(__file__).resolve().parents[3]


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs ``agentkit ...``, where the plugin is found by its entry point."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return lambda *arguments: CliRunner().invoke(main, arguments, catch_exceptions=False)
