"""Every ablation of the papers is a configuration."""

from __future__ import annotations

import pytest

from agentkit.errors import UsageError
from agentkit_training.coevolution import settings as module
from agentkit_training.coevolution.settings import ABLATIONS, CoevolutionSettings, ablation

SWITCHES = {
    "vanilla": set(),
    "tooldna": {"evolution", "feedback"},
    "tooldna-no-feedback": {"evolution"},
    "tooldna-no-evolution": {"feedback"},
    "tooldna-no-loop": set(),
    "cocoda": {"composites"},
    "cocoda-no-dag": set(),
    "cocoda-no-retrieval": {"composites"},
    "cocoda-no-reward": {"composites"},
    "seal": {"interface", "weighting"},
    "seal-no-interface": {"weighting"},
    "seal-no-weighting": {"interface"},
    "seal-no-closed-loop": {"interface", "weighting"},
    "evidence": {"evidence"},
    "evidence-shuffled": {"evidence", "shuffled"},
}
NAMES = ("evolution", "feedback", "evidence", "composites", "interface", "weighting", "shuffled")


@pytest.mark.parametrize("name", SWITCHES)
def test_each_ablation_sets_its_switches_and_no_other(name):
    """A named configuration turns on what it names, whatever was on before."""
    everything = CoevolutionSettings(**dict.fromkeys(NAMES, True), seed=7, group_size=3)
    found = ablation(name, everything)
    assert {switch for switch in NAMES if getattr(found, switch)} == SWITCHES[name]
    assert (found.seed, found.group_size) == (7, 3)
    assert found.closed_loop == (name != "seal-no-closed-loop")
    assert bool(found.composite_coefficient) == (name in {"cocoda", "cocoda-no-retrieval"})
    is_found = name in {"cocoda", "cocoda-no-dag", "cocoda-no-reward"}
    assert found.tools == ("retrieved" if is_found else "given")


def test_each_ablation_is_in_the_table():
    """The module's table names all of them, and an unknown name lists them."""
    assert set(ABLATIONS) == set(SWITCHES)
    assert all(f"``{name}``" in module.__doc__ for name in ABLATIONS)
    with pytest.raises(UsageError, match="there are vanilla, tooldna"):
        ablation("none")
