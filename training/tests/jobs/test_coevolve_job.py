"""Reinforcement learning from a configuration: policy and library learn, and are handed over."""

from __future__ import annotations

import re

import pytest
from safetensors.torch import load_file

from agentkit import open_store
from agentkit.errors import UsageError
from agentkit.evolution import ToolManager
from agentkit.interop.export import artifact_of, write_artifact
from agentkit_training.config.jobs import CoevolveConfig, SftConfig
from agentkit_training.config.reading import parse_config
from agentkit_training.errors import CheckpointError
from agentkit_training.jobs.coevolve import coevolve_job
from agentkit_training.jobs.sft import sft_job
from agentkit_training.tasks.loading import load_tasks_for_training

CONFIG = """\
policy: {weights: tiny, precision: fp32, answer_tokens: 8}
tasks: {source: hidden-constraints, kinds: [enum], train: 4, validation: 2, test: 2}
asking: {max_steps: 1, tool_choice: required}
reward: R2
coevolution: {steps: 2, tasks_per_step: 2, group_size: 2, evidence: true, weighting: true}
watch: {evaluate_every: 1, checkpoint_every: 1}
"""


def job(folder, *changes, **options):
    return coevolve_job(parse_config(CONFIG, CoevolveConfig, changes=changes), folder, **options)


def test_a_run_leaves_log_report_policy_and_library(tmp_path):
    """Every step is in the log, held-out tasks between them, and the artifact is written."""
    run = job(tmp_path / "run")
    records = list(run.records())
    assert [one.step for one in records if one.phase == "coevolve"] == [0, 1]
    assert [one.step for one in records if one.phase == "validation"] == [0, 1, 2]
    assert {"library.json", "policy", "report.html", "checkpoints"} <= {
        path.name for path in run.path.iterdir()
    }


def test_a_frozen_policy_is_not_handed_over(tmp_path):
    """Where only the library learns there are no weights to hand over."""
    run = job(tmp_path / "run", "frozen=true")
    assert not (run.path / "policy").exists()
    assert (run.path / "library.json").exists()


def test_a_cold_start_comes_before_the_steps(tmp_path):
    """Fine-tuning on gold answers is in the log before the first step."""
    run = job(tmp_path / "run", "cold_start={batch_size: 4}", "coevolution.steps=1")
    phases = list(dict.fromkeys(one.phase for one in run.records()))
    assert phases == ["validation", "test", "cold start", "coevolve"]


def test_a_cold_start_reads_what_training_prompts_say(tmp_path):
    """Where blocks are asked for, answers are taught behind that request as well."""
    lengths = []
    for at, evolves in enumerate(("false", "true")):
        changes = ("policy.answer_tokens=160", f"coevolution.evolution={evolves}")
        with pytest.raises(UsageError, match="too long") as caught:
            job(tmp_path / str(at), "cold_start={max_tokens: 10}", *changes)
        lengths.append(int(re.search(r"too long: (\d+) tokens", str(caught.value))[1]))
    assert lengths[1] - lengths[0] > 40


def told(run):
    """What the log is about, line by line."""
    return [(one.phase, one.step) for one in run.records()]


@pytest.mark.parametrize("engine", ["lean", "trl"])
def test_a_resumed_run_goes_on(tmp_path, engine):
    """One step, then resumed with the same configuration: nothing is done twice."""
    run = job(tmp_path / "run", f"engine.name={engine}")
    before = list(run.records())
    again = job(tmp_path / "run", f"engine.name={engine}", resumes=True)
    found = list(again.records())  # the last look at the held-out tasks is made again
    assert found[:-1] == before[:-1]
    assert (found[-1].phase, found[-1].figures) == (before[-1].phase, before[-1].figures)


def weights(run):
    """What the policy of a run came to."""
    (file,) = (run.path / "policy").glob("*.safetensors")
    return load_file(file)


@pytest.mark.parametrize("engine", ["lean", "trl"])
def test_a_run_may_be_made_longer(tmp_path, engine):
    """Two steps and two more come to what four come to; the folder says that four were asked for."""
    changes = (f"engine.name={engine}", "engine.optimizer.learning_rate=0.001")
    whole = job(tmp_path / "whole", *changes, "coevolution.steps=4")
    job(tmp_path / "longer", *changes)
    longer = job(tmp_path / "longer", *changes, "coevolution.steps=4", resumes=True)
    assert longer.config == whole.config
    assert told(longer) == told(whole)
    wanted, found = weights(whole), weights(longer)
    assert all(found[name].equal(wanted[name]) for name in wanted)
    with pytest.raises(CheckpointError, match="steps: 4 in the run, 3 asked for"):
        job(tmp_path / "longer", *changes, "coevolution.steps=3", resumes=True)


def test_a_rate_that_falls_to_the_last_step_is_not_stretched(tmp_path):
    """Its first steps would have had other rates in a longer run."""
    falling = "engine.optimizer={learning_rate: 0.001, schedule: cosine}"
    job(tmp_path / "run", falling)
    with pytest.raises(CheckpointError, match="steps: 2 in the run, 4 asked for"):
        job(tmp_path / "run", falling, "coevolution.steps=4", resumes=True)


def test_a_run_that_began_with_a_library_goes_on_with_its_own(tmp_path):
    """The library has changed since, by the tools that it lacked: the checkpoint's is taken up."""
    tasks = parse_config(CONFIG, CoevolveConfig).tasks
    some = load_tasks_for_training(tasks).train.definitions[:1]
    store = open_store("memory:")
    ToolManager(store).register(list(some))
    write_artifact(artifact_of(store), tmp_path / "begun.json")
    given = f"library={tmp_path / 'begun.json'}"
    first = list(job(tmp_path / "run", given).records())
    assert first[0].phase == "validation"
    longer = list(job(tmp_path / "run", given, "coevolution.steps=3", resumes=True).records())
    versions = [one.figures["library/version"] for one in longer if one.phase == "coevolve"]
    assert len(versions) == 3
    assert versions == sorted(versions)
    assert versions[0] > store.load().version


@pytest.mark.parametrize("acceptance", ["held_out", "validation"])
def test_held_out_tasks_that_decide_have_to_be_there(tmp_path, acceptance):
    """Without them nothing could ever pass; who only checks texts needs none."""
    changes = ("tasks.validation=0", f"coevolution.acceptance={acceptance}")
    if acceptance == "validation":
        assert job(tmp_path, *changes)
        return
    with pytest.raises(UsageError, match="acceptance held_out chooses by the validation tasks"):
        job(tmp_path, *changes)
    assert not list(tmp_path.iterdir())


def test_a_cold_start_reads_the_prompts_of_the_steps(tmp_path):
    """What retrieval offers is in the taught prompts, too, so that the first loss is another."""
    cold = ("cold_start={batch_size: 4}", "coevolution.steps=0")

    def first_loss(name, tools):
        run = job(tmp_path / name, *cold, f"coevolution.tools={tools}")
        return next(one.figures["loss"] for one in run.records() if one.phase == "cold start")

    assert first_loss("given", "given") == first_loss("again", "given")
    assert first_loss("given-too", "given") != first_loss("retrieved", "retrieved")


def test_a_run_of_another_kind_is_not_gone_on_with(tmp_path):
    """The command that began it is named, and not each key in which the two differ."""
    kept = job(tmp_path / "run", "coevolution.steps=0", command="agentkit-train grpo it.yaml")
    tuning = parse_config("policy: {weights: tiny}\ntasks: {source: arithmetic}", SftConfig)
    with pytest.raises(CheckpointError, match=r"another configuration, by 'agentkit-train grpo"):
        sft_job(tuning, kept.path, resumes=True)
