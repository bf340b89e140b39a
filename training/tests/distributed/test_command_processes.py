"""The commands under ``torchrun``: two processes make one run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file

from agentkit.export import read_artifact
from agentkit.testing.provider_server import ProviderServer
from agentkit_training.cli.main import main
from agentkit_training.runs.directory import RunDirectory

CONFIG = """\
policy: {weights: tiny, precision: fp32, answer_tokens: 40}
tasks: {source: hidden-constraints, kinds: [enum], train: 4, validation: 3, test: 2}
asking: {max_steps: 1, tool_choice: required}
reward: R2
cold_start: {batch_size: 4, epochs: 40, optimizer: {learning_rate: 5.0e-3}}
coevolution: {steps: 2, tasks_per_step: 2, group_size: 4, feedback: true, weighting: true}
engine: {name: trl, optimizer: {learning_rate: 1.0e-3}}
watch: {evaluate_every: 1, checkpoint_every: 1}
"""


def taught(request):
    """What a feedback model says of the tool that it is asked about."""
    asked = request.body["messages"][-1]["content"]
    name = re.findall(r'{"tool": "(\w+)", "summary"', asked)[-1]
    said = {"tool": name, "usage_rules": ["Give each value in the words of the tool."]}
    return f"<description>{json.dumps(said)}</description>"


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """A configuration whose feedback model answers on this machine."""
    with ProviderServer(taught) as server:
        path = tmp_path_factory.mktemp("config") / "run.yaml"
        path.write_text(f"{CONFIG}feedback_model: openai-compatible:teacher@{server.base_url}\n")
        yield path


@pytest.fixture(scope="module")
def alone(config, tmp_path_factory):
    """The run of one process."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    done = CliRunner().invoke(main, ["coevolve", str(config), "--output", str(folder)])
    assert done.exit_code == 0, done.output
    return RunDirectory(folder)


@pytest.fixture(scope="module")
def both(config, tmp_path_factory):
    """The run of two processes, and what they printed."""
    folder = tmp_path_factory.mktemp("both") / "run"
    done = start("coevolve", config, "--output", folder)
    assert done.returncode == 0, done.stderr[-4000:]
    return RunDirectory(folder), done


def start(*arguments):
    """A command, started by ``torchrun`` in two processes."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node=2", "-m", "agentkit_training.cli.main", *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=240, check=False
    )


def weights(run):
    (file,) = (run.path / "policy").glob("*.safetensors")
    return torch.cat([one.flatten() for _, one in sorted(load_file(file).items())])


def told(run):
    """What the log holds but for times, and numbers as they come on any number of processes."""
    return [
        (
            one.phase,
            one.step,
            one.labels,
            {
                name: pytest.approx(value, abs=1e-4)
                for name, value in one.figures.items()
                if not name.endswith("seconds")
            },
        )
        for one in run.records()
    ]


def test_two_processes_make_the_run_of_one(alone, both):
    """Log, library and weights are those of one process; each came from shares of the rollouts."""
    run, _ = both
    assert [told(run), weights(run).shape] == [told(alone), weights(alone).shape]
    assert torch.allclose(weights(run), weights(alone), atol=1e-4)
    ours, theirs = (read_artifact(one.path / "library.json").library for one in (run, alone))
    assert ours.digest == theirs.digest
    assert ours.version > 1


def test_rank_0_speaks_for_all(both):
    """One table is printed, one line for each look at held-out tasks, and one folder written."""
    run, done = both
    assert done.stdout.count("held-out tasks") == 1
    assert done.stderr.count("validation, after 0 steps") == 1
    assert {path.name for path in run.path.iterdir()} == {
        "checkpoints",
        "cold-start",
        "config.yaml",
        "library.json",
        "log.jsonl",
        "policy",
        "report.html",
        "run.json",
    }
