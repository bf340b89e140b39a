"""The commands under ``torchrun``: two processes make one run, and end as one."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
import torch
import trl
from click.testing import CliRunner
from safetensors.torch import load_file
from support.model_server import ProviderServer

from agentkit.interop.export import read_artifact
from agentkit_training import tiny_policy
from agentkit_training.cli.main import main
from agentkit_training.policy.saving import save_policy
from agentkit_training.runs import RunDirectory

CONFIG = """\
policy: {weights: tiny, precision: fp32, answer_tokens: 40}
tasks: {source: hidden-constraints, kinds: [enum], train: 4, validation: 3, test: 2}
asking: {max_steps: 1, tool_choice: required}
reward: R2
cold_start: {batch_size: 4, epochs: 40, optimizer: {learning_rate: 5.0e-3}}
coevolution: {steps: 3, tasks_per_step: 2, group_size: 4, feedback: true, weighting: true}
engine: {name: trl, optimizer: {learning_rate: 1.0e-3}}
watch: {evaluate_every: 1, checkpoint_every: 1}
"""

FINE_TUNING = """\
policy: {weights: tiny, precision: fp32, answer_tokens: 8}
tasks: {source: hidden-constraints, kinds: [enum], train: 4, validation: 2, test: 2}
asking: {max_steps: 1, tool_choice: required}
sft: {batch_size: 4, epochs: 4, optimizer: {learning_rate: 1.0e-3}}
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
    done = ended(start("coevolve", config, "--output", folder))
    assert done.returncode == 0, done.stderr[-4000:]
    return RunDirectory(folder), done


def start(*arguments, program=("-m", "agentkit_training.cli.main")):
    """A command, started by ``torchrun`` in two processes."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node=2", *program, *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(process):
    """How it ended, and what it printed; no process may wait for another for ever."""
    try:
        printed, said = process.communicate(timeout=120)
    finally:
        process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, printed, said)


def told_errors(done):
    """Every line with which our commands begin an error."""
    return [line for line in done.stderr.splitlines() if line.startswith("Error: ")]


_OWN = {"read_tokens"} | ({"entropy"} if trl.__version__.startswith("1.0.") else set())
"""What depends on how rows are laid out: padding, and TRL 1.0's entropy, which is the mean of what
each process has for a mean."""


def weights(run):
    (file,) = (run.path / "policy").glob("*.safetensors")
    return torch.cat([one.flatten() for _, one in sorted(load_file(file).items())])


def told(run):
    """What the log holds but for times and padding, numbers as on any number of processes."""
    return [
        (
            one.phase,
            one.step,
            one.labels,
            {
                name: pytest.approx(value, abs=1e-4)
                for name, value in one.figures.items()
                if not name.endswith("seconds") and name not in _OWN
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


def test_a_run_that_was_interrupted_goes_on(config, both, tmp_path):
    """Ctrl-C ends all processes and is told once; resumed, the run ends as the unbroken one."""
    run, _ = both
    folder = tmp_path / "run"
    process = start("coevolve", config, "--output", folder)
    until = time.monotonic() + 100
    while not (folder / "checkpoints" / "step-000001").exists() and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    done = ended(process)
    assert done.returncode != 0
    assert done.stderr.count("Interrupted; completed work is kept.") == 1
    assert done.stderr.count(f"The run is in {folder}; give the same command with --resume") == 1
    assert told_errors(done) == []
    assert not (folder / "report.html").exists()
    resumed = ended(start("coevolve", config, "--output", folder, "--resume"))
    assert resumed.returncode == 0, resumed.stderr[-4000:]
    assert told(RunDirectory(folder)) == told(run)
    assert torch.equal(weights(RunDirectory(folder)), weights(run))


def test_another_number_of_processes_does_not_go_on(config, alone):
    """What one process began two do not end: it would be another run, and that is said once."""
    done = ended(start("coevolve", config, "--output", alone.path, "--resume"))
    assert done.returncode != 0
    assert len(told_errors(done)) == 1
    assert done.stderr.count("the checkpoint is of 1 process,") == 1


def test_fine_tuning_in_two_processes_takes_the_steps_of_one(tmp_path):
    """Each batch is read by both; one folder is written, with the weights of one process.

    A finished run that is gone on with ends in the same weights.
    """
    path = tmp_path / "sft.yaml"
    path.write_text(FINE_TUNING)
    done = ended(start("sft", path, "--output", tmp_path / "both"))
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.count("held-out tasks") == 1
    single = CliRunner().invoke(main, ["sft", str(path), "--output", str(tmp_path / "alone")])
    assert single.exit_code == 0, single.output
    both, alone = (RunDirectory(tmp_path / name) for name in ("both", "alone"))
    assert [(one.phase, one.step) for one in both.records()] == [
        (one.phase, one.step) for one in alone.records()
    ]
    assert torch.allclose(weights(both), weights(alone), atol=1e-4)
    again = ended(start("sft", path, "--output", tmp_path / "both", "--resume"))
    assert again.returncode == 0, again.stderr[-4000:]
    assert torch.allclose(weights(both), weights(alone), atol=1e-4)


def test_an_error_of_one_process_ends_all(config, tmp_path):
    """The process that failed tells why; the one that waits for it ends without a word."""
    (tmp_path / "weights").mkdir()
    save_policy(tiny_policy(), tmp_path / "weights")
    home = f"[ $RANK = 1 ] && export HOME={tmp_path / 'elsewhere'} || export HOME={tmp_path}"
    program = ("--no-python", "bash", "-c", f'{home}; exec "$@"', "bash")
    arguments = ("--output", tmp_path / "run", "--set", "policy.weights=~/weights")
    command = (sys.executable, "-m", "agentkit_training.cli.main", "coevolve", config)
    done = ended(start(*command, *arguments, program=program))
    assert done.returncode != 0
    (error,) = told_errors(done)
    assert "elsewhere" in error
    assert "In process 1 of 2:" in done.stderr
