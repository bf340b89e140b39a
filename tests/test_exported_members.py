"""The public door: what it lists, it has; what it has, it lists."""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

import agentkit


def unsorted_names(names: list[str]) -> list[str]:
    """Names that stand before one that sorts first."""
    return [a for a, b in itertools.pairwise(names) if a >= b]


def test_exported_names_are_sorted_and_unique():
    """``__all__`` reads like an index."""
    assert unsorted_names(agentkit.__all__) == []
    assert unsorted_names(["Tool", "Agent"])  # the check can fail


@pytest.mark.parametrize("name", agentkit.__all__)
def test_each_export_resolves(name):
    """Every name that the stub lists loads from the module that it names."""
    assert getattr(agentkit, name) is not None


def packages() -> Iterator[ModuleType]:
    """The top package and every package below it."""
    yield agentkit
    for found in pkgutil.walk_packages(agentkit.__path__, "agentkit."):
        if found.ispkg:
            yield importlib.import_module(found.name)


def test_no_export_has_the_name_of_a_module_beside_it():
    """What a package's name stands for does not depend on which modules were imported before."""
    for package in packages():
        modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
        assert modules.isdisjoint(getattr(package, "__all__", ())), package.__name__


def test_dir_lists_the_exports():
    """Completion in a shell shows the public names before any is loaded."""
    assert dir(agentkit) == agentkit.__all__


def test_unknown_name_is_an_attribute_error():
    """A misspelt name fails like that of any module, with the name in the message."""
    with pytest.raises(AttributeError, match="No agentkit attribute Agnet"):
        _ = agentkit.Agnet  # type: ignore[attr-defined]  # the misspelling is the point


def test_star_import_brings_the_exports():
    """``from agentkit import *`` works although the names load lazily."""
    code = "from agentkit import *; print(Agent.__name__, tool.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["Agent", "tool"]
