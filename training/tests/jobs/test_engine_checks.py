"""What an engine needs is asked for before weights are loaded, and what it is told reaches it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentkit.errors import MissingExtraError, UsageError
from agentkit_training import tiny_policy
from agentkit_training.config.jobs import CoevolveConfig, SftConfig
from agentkit_training.config.reading import parse_config
from agentkit_training.distributed.ranks import Alone
from agentkit_training.jobs.coevolve import coevolve_job
from agentkit_training.jobs.sft import sft_job
from agentkit_training.policy.saving import save_policy
from agentkit_training.runs import RunDirectory

CONFIG = """\
policy: {weights: absent, precision: fp32, answer_tokens: 6}
tasks: {source: hidden-constraints, kinds: [enum], train: 2, validation: 1, test: 1}
asking: {max_steps: 1, tool_choice: required}
coevolution: {steps: 1, tasks_per_step: 2, group_size: 2}
engine: {name: trl}
"""
FINE_TUNING = """\
policy: {weights: absent}
tasks: {source: hidden-constraints, kinds: [enum], train: 2, validation: 1, test: 1}
"""
TWO = Alone(rank=0, world=2)
DOUBLE = Path(__file__).parents[1] / "engines" / "vllm_double"


def test_an_engine_fits_the_number_of_processes(tmp_path):
    """One that is for one process says so before it looks for the weights."""
    config = parse_config(CONFIG, CoevolveConfig, changes=["engine.name=lean"])
    with pytest.raises(UsageError, match=r"set engine\.name: trl"):
        coevolve_job(config, tmp_path / "run", ranks=TWO)
    assert not (tmp_path / "run").exists()


def test_a_package_that_is_absent_is_named(tmp_path):
    """The install line comes at once, not after an hour of measuring."""
    if importlib.util.find_spec("vllm") is not None:
        pytest.skip("vllm is installed")
    config = parse_config(CONFIG, CoevolveConfig, changes=["engine.vllm={}"])
    with pytest.raises(MissingExtraError, match="pip install"):
        coevolve_job(config, tmp_path / "run", ranks=TWO)


def test_fine_tuning_in_several_processes_says_what_it_lacks(tmp_path):
    """Rounds of ToolACE-R are for one process."""
    config = parse_config(FINE_TUNING, SftConfig, changes=["toolace={}"])
    with pytest.raises(UsageError, match="process"):
        sft_job(config, tmp_path / "run", ranks=TWO)


def test_the_section_vllm_lets_it_write(tmp_path):
    """With a double in the place of vLLM the command trains on what that wrote."""
    save_policy(tiny_policy(), tmp_path / "weights")
    (tmp_path / "run.yaml").write_text(CONFIG.replace("absent", str(tmp_path / "weights")))
    old = importlib.metadata.version("trl").startswith("1.0")
    release = "0.17.0" if old else "0.24.0"
    told = tmp_path / f"vllm-{release}.dist-info"
    told.mkdir()
    (told / "METADATA").write_text(f"Name: vllm\nVersion: {release}\n")
    program = (
        "import sys, vllm\n"
        "from agentkit_training.cli.main import main\n"
        "main(sys.argv[1:], standalone_mode=False)\n"
        "print('written by the double:', sum(map(sum, [one.asked for one in vllm.LLM.made])))\n"
    )
    path = os.pathsep.join([str(DOUBLE), str(tmp_path), *filter(None, sys.path)])
    arguments = ["grpo", str(tmp_path / "run.yaml"), "--output", str(tmp_path / "run")]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments, "--set", "engine.vllm={memory_share: 0.2}"],
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "written by the double: 4" in done.stdout
    records = list(RunDirectory(tmp_path / "run").records())
    assert [one.step for one in records if one.phase == "grpo"] == [0]
