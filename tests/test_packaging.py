"""What a distribution promises: extras, typing marker, changelog, files at the top level."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata

import pytest

import agentkit

EXTRAS = {
    "dev", "dir", "docs", "fast", "gepa", "litellm", "mcp", "openapi", "otel", "parquet", "serve",
    "sign", "vectors",
}  # fmt: skip
TOP_LEVEL = {
    ".ci", ".gitignore", ".pre-commit-config.yaml", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE",
    "SECURITY.md", "Makefile", "README.md", "agentkit", "docs", "examples", "plugins",
    "pyproject.toml", "tests", "training",
}  # fmt: skip


@pytest.fixture(scope="module")
def project(project_root):
    """The parsed pyproject.toml."""
    return tomllib.loads((project_root / "pyproject.toml").read_text(encoding="utf-8"))


def unexplained(lines: list[str]) -> list[str]:
    """Entries of a list in TOML that carry no reason on their line."""
    return [
        line.strip() for line in lines if re.match(r'\s+"[A-Z]+[0-9]+",', line) if "#" not in line
    ]


def test_all_extras_exist(project):
    """``pip install agentkit-evolve[litellm]`` and its siblings resolve to something."""
    assert set(project["project"]["optional-dependencies"]) == EXTRAS


def test_version_has_one_source(project):
    """The distribution, the package and its ``__version__`` agree."""
    assert "version" not in project["project"]
    assert metadata.version("agentkit-evolve") == agentkit.__version__


def test_command_is_installed():
    """The distribution brings the ``agentkit`` command."""
    (command,) = metadata.entry_points(group="console_scripts", name="agentkit")
    assert callable(command.load())


def test_package_is_typed(project_root):
    """Type checkers read our annotations: every distribution ships ``py.typed``."""
    assert (project_root / "agentkit" / "py.typed").exists()
    plugins = project_root.glob("plugins/*/agentkit_*/__init__.py")
    for package in (*plugins, project_root / "training" / "agentkit_training" / "__init__.py"):
        assert package.with_name("py.typed").exists(), package


def test_changelog_has_a_place_for_the_next_change(project_root):
    """The changelog opens with Unreleased and uses the known headings only."""
    text = (project_root / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE)[0] == "Unreleased"
    headings = set(re.findall(r"^### (.+)$", text, re.MULTILINE))
    assert headings <= {"Removed", "Deprecated", "Added", "Changed", "Fixed", "Security"}


def test_every_lint_exception_has_a_reason(project_root):
    """Each globally ignored lint rule says why on its line."""
    text = (project_root / "pyproject.toml").read_text(encoding="utf-8")
    ignored = text.split("[tool.ruff.lint]")[1].split("[tool.ruff.lint.per-file-ignores]")[0]
    assert unexplained(ignored.splitlines()) == []
    assert unexplained(['    "S101",'])  # the check can fail


def test_top_level_holds_the_agreed_files_only(project_root):
    """A newcomer finds the same few folders and files, and nothing else, under version control."""
    ignored = {
        line.strip("/*\n")
        for line in (project_root / ".gitignore").read_text(encoding="utf-8").splitlines()
    }
    present = {path.name for path in project_root.iterdir()} - {".git", *ignored}
    assert {name for name in present if not name.startswith(".coverage")} <= TOP_LEVEL
