"""What a job checks before it loads weights, what it counts, and what its log says."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agentkit.errors import MissingExtraError, UsageError
from agentkit.evaluation import EvaluationSettings
from agentkit_training import PolicyModel, tiny_policy
from agentkit_training.cli.show import show_dry_run
from agentkit_training.config.jobs import CoevolveConfig, SftConfig
from agentkit_training.config.reading import parse_config
from agentkit_training.distributed.ranks import Alone
from agentkit_training.jobs.coevolve import coevolve_job
from agentkit_training.jobs.running import measured
from agentkit_training.jobs.sft import sft_job
from agentkit_training.policy.saving import save_policy
from agentkit_training.report import run_html
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


ROWS_CONFIG = """\
policy: {{weights: tiny, precision: fp32, answer_tokens: 8}}
tasks: {{source: {source}, environment: {tools}, shares: {{train: 1, validation: 0, test: 0}}}}
asking: {{max_steps: 2}}
"""
SFT = "sft: {batch_size: 4}\n"
TOOLS = '''\
from agentkit import tool


@tool
def double(number: int) -> int:
    """Twice a number.

    Args:
        number: Any.
    """
    return 2 * number
'''


def row(at, **changes):
    calls = [{"name": "double", "arguments": {"number": at}}]
    return {"id": f"{at}", "request": f"Twice {at}?", "tools": ["double"]} | {
        "expects": {"calls": calls},
        **changes,
    }


@pytest.fixture
def config(tmp_path):
    """A configuration over ten rows, four of which are no tasks, for two reasons."""
    unknown = {"tools": ["triple"]}
    rows = [row(at) for at in range(6)]
    rows += [row(6, **unknown), row(7, **unknown), row(8, **unknown), row(9, expects={"is": 1})]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    (tmp_path / "tools.py").write_text(TOOLS)
    return ROWS_CONFIG.format(source=tmp_path / "rows.jsonl", tools=tmp_path / "tools.py")


def told(run):
    """The notes of the log about rows."""
    return [note for one in run.records() for note in one.notes if "left out" in note]


def check(notes):
    (note,) = notes
    assert note.startswith("4 of 10 rows are left out: ")
    assert "rows.jsonl, line 7" in note
    assert "rows.jsonl, line 10" in note
    assert note.endswith("; and 2 more")


def test_fine_tuning_notes_the_rows_once(config, tmp_path):
    """One note has the count, a row for each reason, and how many more; resuming adds none."""
    wanted = parse_config(config + SFT, SftConfig)
    run = sft_job(wanted, tmp_path / "run")
    check(told(run))
    assert next(run.records()).phase == "tasks"
    check(told(sft_job(wanted, tmp_path / "run", resumes=True)))


def test_a_dry_run_tells_how_many_rows_there_are_beside_those_named(config, capsys):
    """The same words as in the log."""
    wanted = parse_config(config + SFT, SftConfig)
    show_dry_run(wanted, processes=1)
    words = " ".join(capsys.readouterr().out.split())  # lines are broken where the terminal ends
    _, count, after = words.partition("4 of 10")
    check([f"{count}{after.partition('more.')[0]}more"])


def right_call(prompt):
    """The right call for what a prompt asks about."""
    item = prompt.rpartition("What does ")[2].partition(" cost")[0].strip()
    return json.dumps({"calls": [{"name": "get_price", "arguments": {"item": item}}]})


def test_what_could_not_be_answered_is_not_solved(shop, writing):
    """A prompt beyond the window counts as a task that failed, and as a fault."""
    first, *others = shop.tasks
    long = replace(first, request="So much to say. " * 2000 + first.request)
    policy = tiny_policy(["What does apple bread cheese cost?"])
    model = PolicyModel(policy, writer=writing(policy.tokenizer, right_call))
    settings = EvaluationSettings(max_steps=1)
    records = [
        measured(model, replace(shop, tasks=tasks), step=0, settings=settings)
        for tasks in (shop.tasks, (long, *others))
    ]
    figures = [one.figures for one in records]
    assert [(one["accuracy"], one["faults"], one["tasks"]) for one in figures] == [
        (1.0, 0.0, 3.0),
        (2 / 3, 1.0, 3.0),
    ]
    assert records[0].notes == ()
    (note,) = records[1].notes
    assert note.startswith("1 of 3 tasks could not be asked, answered or judged; the first: Model")
    assert "tiny has room for" in note


EQUAL_CONFIG = """\
policy: {weights: tiny, precision: fp32, answer_tokens: 8}
tasks: {source: hidden-constraints, kinds: [enum], train: 4, validation: 2, test: 2}
asking: {max_steps: 1, tool_choice: required}
coevolution: {steps: 2, tasks_per_step: 1, group_size: 3}
engine: {optimizer: {learning_rate: 0.001}}
"""


def steps_of(folder, engine, *changes):
    """The share that was skipped in each step, and what was noted."""
    config = parse_config(EQUAL_CONFIG, CoevolveConfig, changes=[f"engine.name={engine}", *changes])
    run = coevolve_job(config, folder / engine)
    return [(one.figures["skipped"], one.notes) for one in run.records() if one.phase == "grpo"]


@pytest.mark.parametrize(("kl", "share"), [(0, 1), (0.5, 0)], ids=["plain", "divergence"])
def test_equal_rewards_are_told_alike(tmp_path, kl, share):
    """Equal rewards leave nothing to learn but a divergence; what was skipped is told by both."""
    change = f"engine.objective.kl_coefficient={kl}"
    lean, trl = (steps_of(tmp_path, engine, change) for engine in ("lean", "trl"))
    assert trl == lean
    assert [skipped for skipped, _ in trl] == [share, share]
    told = [any(note.startswith("nothing was learned") for note in notes) for _, notes in trl]
    assert told == [bool(share)] * 2


def test_a_frozen_policy_has_no_loss(tmp_path):
    """Where the library alone learns, nothing is said of an update that is not made."""
    changes = ["frozen=true", "coevolution.evidence=true"]
    run = coevolve_job(
        parse_config(EQUAL_CONFIG, CoevolveConfig, changes=changes), tmp_path / "run"
    )
    steps = [one for one in run.records() if one.phase == "coevolve"]
    assert len(steps) == 2
    assert all(one.figures.keys() >= {"reward", "library/version"} for one in steps)
    assert not any(one.figures.keys() & {"loss", "learning_rate", "skipped"} for one in steps)
    assert not any("nothing was learned" in note for one in steps for note in one.notes)


ROUNDS_CONFIG = """\
policy: {weights: tiny, precision: fp32, answer_tokens: 8}
tasks: {source: hidden-constraints, kinds: [enum], train: 4, validation: 2, test: 0}
asking: {max_steps: 1, tool_choice: required}
sft: {batch_size: 4, epochs: 2, optimizer: {learning_rate: 1e-3}}
"""


def tell_rounds(folder, toolace, changes=(), **options):
    """The run, and what its rounds wrote into its log."""
    run = sft_job(
        parse_config(ROUNDS_CONFIG + toolace, SftConfig, changes=changes), folder, **options
    )
    return run, [note for one in run.records() if one.phase == "toolace" for note in one.notes]


def test_a_round_without_samples_says_that_nothing_was_learned(tmp_path):
    """A random policy comes near no answer; neither log nor report look like a success."""
    run, notes = tell_rounds(
        tmp_path / "run", "toolace: {rounds: 2, attempts: 2, refines: false}\n"
    )
    assert notes[-2] == "round 1: 0 of 4 samples selected (4 too difficult); nothing was learned"
    assert notes[-1] == (
        "ended: round 1 had nothing to learn from, as all samples are too difficult (fine-tune "
        "without rounds first, or select higher); the policy is as it came"
    )
    assert "toolace</" not in run_html(run).partition("</header>")[0]


def test_a_round_that_gains_too_little_says_how_little(tmp_path):
    """The gain stands beside what was asked for, and a run that is over tells it once."""
    wanted = (
        "toolace: {rounds: 2, attempts: 2, refines: false, selection: {low: -1, high: 2}, "
        "least_gain: 2}\n"
    )
    _, notes = tell_rounds(tmp_path / "run", wanted)
    assert notes[-2].startswith("round 1: 4 of 4 samples selected; 4 examples learned; ")
    assert notes[-1].startswith("ended: round 1 gained ")
    assert "points, less than least_gain 2" in notes[-1]
    _, again = tell_rounds(tmp_path / "run", wanted, resumes=True)
    assert again == notes


TWO_ROUNDS = (
    "toolace: {rounds: 2, attempts: 2, refines: false, selection: {low: -1, high: 2}, "
    "least_gain: -1}\n"
)


@pytest.mark.parametrize("save_every", [1, 50])
def test_a_run_that_was_cut_twice_has_the_log_of_one_that_was_not(tmp_path, save_every):
    """It goes on inside a round, or after the last whole one, and nothing is told twice or lost."""

    def cut(record):
        if record.phase == "sft" and record.step == 3:
            raise KeyboardInterrupt

    def again(record):
        if record.notes == ("round 3: sft",):
            raise KeyboardInterrupt

    rounds = TWO_ROUNDS.replace("rounds: 2", "rounds: 3")
    changes = [f"sft.save_every={save_every}"]
    whole, _ = tell_rounds(tmp_path / "whole", rounds, changes)
    for listen, resumes in ((cut, False), (again, True)):
        with pytest.raises(KeyboardInterrupt):
            tell_rounds(tmp_path / "run", rounds, changes, listen=listen, resumes=resumes)
    run, _ = tell_rounds(tmp_path / "run", rounds, changes, resumes=True)
    assert log_of(run) == log_of(whole)


def log_of(run):
    """What the log of a run says, but for times."""
    return [
        (one.phase, one.step, one.notes, one.figures.get("loss"), one.figures.get("accuracy"))
        for one in run.records()
    ]


def test_a_run_that_learned_nothing_is_measured_once(tmp_path):
    """Going on with it adds nothing to its log either."""
    wanted = "toolace: {rounds: 2, attempts: 2, refines: false}\n"
    run, _ = tell_rounds(tmp_path / "run", wanted)
    first = log_of(run)
    assert [step for phase, step, *_ in first if phase == "validation"] == [0]
    run, _ = tell_rounds(tmp_path / "run", wanted, resumes=True)
    assert log_of(run) == first
