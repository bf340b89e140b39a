"""Reinforcement learning from a configuration: policy, library and composites learn and are exported."""

import re
from dataclasses import replace

import pytest
from safetensors.torch import load_file

from agentkit import open_store
from agentkit._waiting import wait_for
from agentkit.errors import UsageError
from agentkit.evaluation import EvaluationSettings
from agentkit.evolution import ToolManager
from agentkit.interop.export import artifact_of, write_artifact
from agentkit.messages import AssistantMessage, ToolCall, ToolMessage
from agentkit.models.base import ModelResponse
from agentkit.testing import FunctionModel
from agentkit_training import tiny_policy
from agentkit_training.coevolution.keeper import LibraryKeeper
from agentkit_training.coevolution.settings import CoevolutionSettings, ablation
from agentkit_training.coevolution.tasks import pure_tools, with_composites
from agentkit_training.config.jobs import CoevolveConfig, SftConfig
from agentkit_training.config.reading import parse_config
from agentkit_training.errors import CheckpointError
from agentkit_training.fine_tuning.teaching import taught_examples
from agentkit_training.jobs.coevolve import coevolve_job
from agentkit_training.jobs.evaluate import evaluate_job
from agentkit_training.jobs.sft import sft_job
from agentkit_training.tasks.arithmetic import RECIPES, arithmetic, arithmetic_episodes
from agentkit_training.tasks.loading import TaskSpec, load_tasks_for_training

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


BILLS = arithmetic(train=4, test=3, recipes=RECIPES[:1])


@pytest.fixture
def keeper():
    """The library of a run on bills, with the code of the tasks' tools."""
    return LibraryKeeper(
        settings=CoevolutionSettings(composites=True),
        benchmark=BILLS.train,
        tools=pure_tools(BILLS.train),
    )


def in_one_call(request):
    """Makes the one call that a bill takes, if a composite for it is offered."""
    if any(isinstance(one, ToolMessage) for one in request.messages):
        return ModelResponse(message=AssistantMessage(text="Done."))
    composite = next((tool for tool in request.tools if tool.is_composite), None)
    if composite is None:
        return ModelResponse(message=AssistantMessage(text="There is no such tool."))
    asked = next(one.text for one in request.messages if one.role == "user")
    task = next(one for one in BILLS.test.tasks if one.request == asked)
    first, second = task.expects[0].calls
    numbers = (first.arguments["a"], first.arguments["b"], second.arguments["b"])
    arguments = dict(zip(composite.signature.properties, numbers, strict=True))
    call = ToolCall(call_id="1", name=composite.name, arguments=arguments)
    return ModelResponse(message=AssistantMessage(tool_calls=(call,)))


def test_composites_of_pure_tools_are_tried_out_on_the_code_of_the_tasks(keeper):
    """The tasks' worlds bring the code; without it no composite of pure tools can be accepted."""
    assert [tool.name for tool in pure_tools(BILLS.train)] == ["add", "sub", "mul", "div"]
    (found,) = keeper.distil(arithmetic_episodes(BILLS.train))
    assert found.state == "active"


def test_held_out_tasks_offer_the_composites_of_the_library(keeper):
    """An evaluation with a library that has composites lets the model use them, and judges that."""
    keeper.distil(arithmetic_episodes(BILLS.train))
    library = artifact_of(keeper.store).library
    for given, passed in ((library, 3), (None, 0)):
        model, settings = FunctionModel(in_one_call), EvaluationSettings()
        report = evaluate_job(model, BILLS.test, settings, library=given)
        assert report.total.passed == passed


COCODA = """\
policy: {weights: tiny, precision: fp32, answer_tokens: 8}
tasks: {source: arithmetic, train: 30, validation: 0, test: 1}
asking: {max_steps: 4}
coevolution: {steps: 1, tasks_per_step: 1, group_size: 2}
warm_up: 2
cold_start: {batch_size: 8, epochs: 1}
"""


def test_a_run_of_cocoda_distils_composites_before_the_policy_learns(tmp_path):
    """The named configuration goes through all three stages; a resumed run does none of them again."""
    config = parse_config(COCODA, CoevolveConfig)
    config = replace(config, coevolution=ablation("cocoda-no-retrieval", config.coevolution))
    run = coevolve_job(config, tmp_path / "run")
    phases = dict.fromkeys(one.phase for one in run.records() if one.phase != "tasks")
    assert list(phases) == ["test", "warm-up", "cold start", "coevolve"]
    (warm,) = (one for one in run.records() if one.phase == "warm-up")
    assert warm.figures["tried"] == 2
    assert warm.figures["composites"] > 0
    longer = replace(config, coevolution=replace(config.coevolution, steps=2))
    again = coevolve_job(longer, tmp_path / "run", resumes=True)
    assert [one.phase for one in again.records()].count("warm-up") == 1


def test_a_cold_start_teaches_the_composites_that_tasks_offer(keeper):
    """A policy that never saw composites calls them wrongly; so most answers are taught with them."""
    keeper.distil(arithmetic_episodes(BILLS.train))
    library = artifact_of(keeper.store).library
    names = [tool.name for tool in library if tool.definition.is_composite]
    policy, spec = tiny_policy(), TaskSpec(source="arithmetic", train=4)
    for tasks, share in ((with_composites(BILLS.train, library), 0.5), (BILLS.train, 0.0)):
        settings = EvaluationSettings(max_steps=4)
        made = taught_examples(policy, tasks, spec, library=library, settings=settings)
        texts = [policy.tokenizer.decode(one.completion) for one in wait_for(made).rows]
        assert (sum(names[0] in text for text in texts) > share * len(texts)) is (share > 0)
