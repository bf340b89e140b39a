"""vLLM's double writes the rollouts, through TRL's own code: with the weights of now, weighed once.

vLLM itself does not run here. ``vllm_double`` holds the few names of it that TRL touches.
"""

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from agentkit.errors import MissingExtraError, UsageError
from agentkit_training import PolicyModel, collect, tiny_policy
from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.engines.lean import LeanEngine
from agentkit_training.engines.objective import Objective
from agentkit_training.engines.trl.engine import TrlEngine
from agentkit_training.engines.trl.vllm import VllmSettings, VllmWriter

HERE = Path(__file__).parent
CONFTEST = str(HERE.parent / "conftest.py")
FAST = OptimizerSettings(learning_rate=3e-3)
STEPS = 3
WIDE = {"clip_low": 1.0, "clip_high": 1e6}


def double(folder):
    """The path that makes the double importable, as a release that this TRL knows."""
    old = importlib.metadata.version("trl").startswith("1.0")
    told = folder / f"vllm-{'0.17.0' if old else '0.24.0'}.dist-info"
    told.mkdir()
    (told / "METADATA").write_text(f"Name: vllm\nVersion: {told.stem.split('-')[1]}\n")
    return os.pathsep.join([str(HERE / "vllm_double"), str(folder), *filter(None, sys.path)])


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What a process left that trained with the double."""
    folder = tmp_path_factory.mktemp("alone")
    scenarios = ["every_weight", "adapters", "weighed", "cut", "unweighed", "bounded"]
    done = subprocess.run(
        [sys.executable, str(HERE / "vllm_processes.py"), str(folder), CONFTEST, *scenarios],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": double(folder)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


def told(folder, scenario):
    return json.loads((folder / "told.json").read_text())[scenario]


def left(folder, scenario):
    return torch.load(folder / f"{scenario}.pt")


def moved(policy):
    return flat(policy) - flat(tiny_policy())


def flat(policy):
    return torch.cat([one.detach().flatten() for one in policy.model.parameters()])


def distance(found, wanted):
    return float((found - flat(tiny_policy()) - wanted).norm() / wanted.norm())


@pytest.mark.parametrize("scenario", ["every_weight", "adapters"])
def test_every_step_is_written_with_the_weights_of_now(alone, scenario):
    """The log-probabilities that vLLM told are those of the policy, after each step anew."""
    found = told(alone, scenario)
    assert found["tokens"] > 100
    assert found["apart"] <= 1e-5
    assert max(found["told"]) <= 1e-5
    assert found["synced"] == found["resets"] == STEPS + 1


def test_requests_that_wait_are_written_together(alone):
    """Each turn of all six attempts is one call, and vLLM is let answer many at once."""
    found = told(alone, "every_weight")
    assert found["asked"] == [6] * STEPS
    assert found["at_once"] == 48


def test_whole_weights_are_handed_over_under_their_own_names(alone):
    """Adapters are added to the weights that they sit on, and these do not drift."""
    every, adapters = told(alone, "every_weight"), told(alone, "adapters")
    assert every["names"] == adapters["names"] == len(list(tiny_policy().model.parameters()))
    assert adapters["moved"] == 0.0


def test_the_policy_writes_itself_when_nothing_trains(alone):
    """After training, as before it, there is no vLLM, and the model answers all the same."""
    assert told(alone, "every_weight")["after"] == 3


@pytest.mark.parametrize(
    ("scenario", "objective"),
    [
        ("weighed", Objective(old_logprobs="sampled", **WIDE)),
        ("bounded", Objective(old_logprobs="sampled", clip_low=0.9, clip_high=5.0)),
        ("unweighed", Objective()),
    ],
)
def test_a_token_is_weighed_once(alone, recorded, scenario, objective):
    """The trainer's probability over vLLM's stands in the ratio or beside it, and never in both.

    Beside the ratio it gives the gradient that it gives within, where neither is bounded.
    """
    policy = tiny_policy()
    LeanEngine(optimizer=FAST, objective=objective).train(policy, recorded(), steps=STEPS)
    assert distance(left(alone, scenario), moved(policy)) <= 1e-3


def test_weights_are_cut_off_at_the_cap(alone):
    """With a cap of 1 no token counts more than without a correction, and some count less."""
    cut, free = left(alone, "cut"), left(alone, "unweighed")
    assert distance(cut, free - flat(tiny_policy())) > 1e-2


def test_the_largest_difference_is_told(alone):
    """Rollouts that were written far from the policy show in the figure of health."""
    assert 0.4 < told(alone, "weighed")["told"][0] < 1.0


def test_vllm_that_is_absent_is_named(recorded):
    """Without vLLM the error says what to install, and nothing was trained."""
    if importlib.util.find_spec("vllm") is not None:
        pytest.skip("vLLM is installed here")
    policy = tiny_policy()
    writer = VllmWriter(policy=policy, settings=VllmSettings(weights="anywhere"))
    with pytest.raises(MissingExtraError, match=r"agentkit-training\[vllm\]"):
        TrlEngine(writer=writer).train(policy, recorded(), steps=1)
    assert torch.equal(flat(policy), flat(tiny_policy()))


def test_a_model_without_a_folder_is_refused(recorded):
    """VLLM loads from a folder; a policy that has none is told how to get one."""
    writer = VllmWriter(policy=tiny_policy())
    with pytest.raises(UsageError, match="save_policy"):
        TrlEngine(writer=writer).train(writer.policy, recorded(), steps=1)


@pytest.mark.parametrize("wrong", [{"memory_share": 1.5}, {"at_once": 0}, {"cap": 0.5}])
def test_settings_that_can_not_be_are_refused(wrong):
    """A share above 1, no answers or a cap below 1 are misuse, told when settings are made."""
    with pytest.raises(UsageError, match=next(iter(wrong))):
        VllmSettings(**wrong)


async def test_outside_of_training_answers_follow_their_seeds(shop):
    """The policy's own writing stands behind the writer, token for token."""
    policy = tiny_policy()
    model = PolicyModel(policy, writer=VllmWriter(policy=policy), max_tokens=8)
    here = PolicyModel(policy, max_tokens=8)
    found, wanted = await collect(model, shop, attempts=2), await collect(here, shop, attempts=2)
    assert [one.sequences for one in found] == [one.sequences for one in wanted]
