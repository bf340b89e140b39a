"""Two processes under ``torchrun`` train one policy and hold one library."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from agentkit_training import tiny_policy
from agentkit_training.engines.base import OptimizerSettings, Share
from agentkit_training.engines.lean import LeanEngine
from agentkit_training.engines.objective import Objective

HERE = Path(__file__).parent
SIZES = [0, 1, 100_000]
"""Lengths of texts."""
RECORDED = HERE.parent / "conftest.py"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder in which two processes left their weights and what they heard."""
    folder = tmp_path_factory.mktemp("two-processes")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node=2", str(HERE / "two_processes.py"), str(RECORDED), str(folder)]
    command.append(json.dumps(SIZES))
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout == ""
    return folder


def told(run, rank):
    return json.loads((run / f"{rank}.json").read_text())


@pytest.mark.parametrize("loss_type", ["grpo", "bnpo", "dapo"])
def test_two_processes_train_as_one(run, loss_type, recorded):
    """Shares of a batch on two processes give the weights of the whole batch on one."""

    class Whole(recorded):
        def rollouts(self, step, share):
            shares = [Share(rank=rank, world=2) for rank in range(2)]
            return [one for each in shares for one in super(Whole, self).rollouts(step, each)]

    policy, start = tiny_policy(), weights(tiny_policy())
    source = Whole()
    LeanEngine(
        optimizer=OptimizerSettings(learning_rate=3e-3, weight_decay=0.01),
        objective=Objective(loss_type=loss_type, kl_coefficient=0.05),
        reference=tiny_policy(seed=1),
    ).train(policy, source, steps=3)
    first, second = (torch.load(run / f"{loss_type}-{rank}.pt") for rank in range(2))
    assert torch.equal(first, second)
    moved = weights(policy) - start
    assert float((first - start - moved).norm() / moved.norm()) <= 1e-4
    losses = [one.loss for one in source.reports]
    assert told(run, 0)[loss_type]["losses"] == pytest.approx(losses, abs=1e-4)


def weights(policy):
    return torch.cat([one.detach().flatten() for one in policy.model.parameters()])


@pytest.mark.parametrize("loss_type", ["grpo", "bnpo", "dapo"])
def test_every_process_takes_up_what_rank_0_decided(run, loss_type):
    """Each step's prompts come from one version; the reports of all processes bear on the next."""
    first, second = (told(run, rank)[loss_type] for rank in range(2))
    assert first == second
    assert first["versions"] == [1, 2, 3]
    assert first["text"] == "Get the price, seen by 1, 2."


def test_different_libraries_stop_every_process(run):
    """Where digests differ, all processes raise, and the message names them by rank."""
    for rank in range(2):
        name, message = told(run, rank)["refused"][0]
        assert name == "LibraryMismatchError"
        assert "rank 0" in message
        assert "rank 1" in message


def test_an_error_of_rank_0_reaches_every_process(run):
    """No process waits for a decision that does not come."""
    assert told(run, 0)["refused"][1] == ["RuntimeError", "the store is gone"]
    name, message = told(run, 1)["refused"][1]
    assert name == "PeerError"
    assert "RuntimeError: the store is gone" in message


def test_texts_of_any_length_arrive_whole(run):
    """Also where one process has much to tell and the other little."""
    for rank in range(2):
        assert told(run, rank)["exchanged"] == [True] * (2 * len(SIZES))
