"""Every ablation of the papers is a configuration."""

import asyncio

import pytest

from agentkit import Library, ToolDefinition
from agentkit.errors import UsageError
from agentkit.testing import FunctionModel
from agentkit_training.coevolution import settings as module
from agentkit_training.coevolution.settings import ABLATIONS, CoevolutionSettings, ablation
from agentkit_training.config.jobs import CoevolveConfig, named_run
from agentkit_training.config.reading import parse_config

CONFIG = "policy: {weights: tiny}\ntasks: {source: hidden-constraints}"

SWITCHES = {
    "vanilla": set(),
    "tooldna": {"evolution", "feedback"},
    "tooldna-no-feedback": {"evolution"},
    "tooldna-no-evolution": {"feedback"},
    "tooldna-no-loop": set(),
    "cocoda": {"composites"},
    "cocoda-no-dag": {"composites", "flat"},
    "cocoda-no-retrieval": {"composites"},
    "cocoda-no-reward": {"composites"},
    "cocoda-no-dag-no-retrieval": {"composites", "flat"},
    "cocoda-none": {"composites", "flat"},
    "cocoda-given": {"composites"},
    "seal": {"interface", "weighting"},
    "seal-no-interface": {"weighting"},
    "seal-no-weighting": {"interface"},
    "seal-no-closed-loop": {"interface", "weighting"},
    "evidence": {"evidence"},
    "evidence-shuffled": {"evidence", "shuffled"},
}
NAMES = ("evolution", "feedback", "evidence", "composites", "interface", "weighting", "shuffled")
NAMES += ("flat",)
DENSE = {"cocoda-no-retrieval", "cocoda-no-dag-no-retrieval", "cocoda-none"}


@pytest.mark.parametrize("name", SWITCHES)
def test_each_ablation_sets_its_switches_and_no_other(name):
    """A named configuration turns on what it names, whatever was on before."""
    everything = CoevolutionSettings(
        **dict.fromkeys(NAMES, True), seed=7, group_size=3, retriever="paper", grows=False
    )
    found = ablation(name, everything)
    assert {switch for switch in NAMES if getattr(found, switch)} == SWITCHES[name]
    assert (found.seed, found.group_size) == (7, 3)
    assert found.closed_loop == (name != "seal-no-closed-loop")
    is_cocoda = name.startswith("cocoda")
    is_rewarded = name in {"cocoda", "cocoda-no-retrieval", "cocoda-given"}
    assert bool(found.composite_coefficient) == is_rewarded
    assert found.grows == (name != "cocoda-none")
    assert found.tools == ("retrieved" if is_cocoda and name != "cocoda-given" else "given")
    assert found.retriever == ("dense" if name in DENSE else "paper")  # else the user's choice
    assert found.strict_format == (name == "vanilla" or name.startswith("tooldna"))


def test_dense_retrieval_finds_eight_tools():
    """The k of CoCoDA's appendix J, where the library has more that are alike."""
    tools = [ToolDefinition.from_schema(f"loan_{n}", "The price of a loan.", {}) for n in range(12)]
    model = FunctionModel(lambda _: "")
    retriever = ablation("cocoda-no-retrieval").make_retriever(model)
    found = asyncio.run(retriever.retrieve("The price of a loan?", Library(tools)))
    assert (len(found.offered), len(found.hits)) == (8, 8)


def test_each_ablation_is_in_the_table():
    """The module's table names all of them, and an unknown name lists them."""
    assert set(ABLATIONS) == set(SWITCHES)
    assert all(f"``{name}``" in module.__doc__ for name in ABLATIONS)
    with pytest.raises(UsageError, match="there are vanilla, tooldna"):
        ablation("none")


def test_a_named_run_has_the_updates_of_its_paper():
    """KL divergence and mini-batches are those of ToolDNA, SEAL and CoCoDA, unless the run has own."""
    config = parse_config(CONFIG, CoevolveConfig)
    found = {name: named_run(name, config).engine for name in ("seal", "cocoda-given", "evidence")}
    kl = {name: engine.objective.kl_coefficient for name, engine in found.items()}
    assert kl == {"seal": 0.001, "cocoda-given": 0.01, "evidence": 0}
    assert {name: one.mini_batches for name, one in found.items()} == {
        "seal": 4,
        "cocoda-given": 1,
        "evidence": 1,
    }
    own = parse_config(CONFIG, CoevolveConfig, changes=["engine.objective.kl_coefficient=0.5"])
    assert named_run("seal", own).engine.objective.kl_coefficient == 0.5
    trl = parse_config(CONFIG, CoevolveConfig, changes=["engine.name=trl"])
    assert named_run("seal", trl).engine.mini_batches == 1
