"""A paper's table as a file: each row is a run, and ours stand beside the paper's."""

import pytest
from click.testing import CliRunner

from agentkit.errors import UsageError
from agentkit_training.cli.main import main
from agentkit_training.config.jobs import CoevolveConfig
from agentkit_training.recipes import load_recipe, recipes

SMALL = (
    *("policy.weights=tiny", "policy.device=cpu", "policy.lora=null", "policy.answer_tokens=160"),
    *("tasks.train=2", "tasks.validation=0", "tasks.test=2", "cold_start=null"),
    *("coevolution.steps=1", "coevolution.tasks_per_step=1", "coevolution.group_size=2"),
)


def recipe(*arguments):
    """The command, with as little to do as there can be."""
    changes = [part for one in SMALL for part in ("--set", one)]
    return CliRunner().invoke(main, ["recipe", *map(str, arguments), *changes])


@pytest.mark.parametrize("name", recipes())
def test_every_row_of_a_recipe_is_a_run(name):
    """Each row is a configuration that can be used, and no two of them are the same."""
    found = load_recipe(name)
    runs = [found.run_of(row, seed=3) for row in found.rows if not row.is_base]
    assert len(set(map(str, runs))) == len(runs) >= 4
    assert {run.tasks.seed for run in runs} == {3}
    assert len({row.folder for row in found.rows}) == len(found.rows)
    assert found.substitutes


def test_rows_have_the_updates_of_their_paper():
    """Sizes and rates stand in the file; KL and mini-batches come with the named configurations."""
    wanted = {
        "tooldna": ((0.001, "grpo", 4), (16, 5, 6, 1.0), 1e-6),
        "seal": ((0.001, "dapo", 4), (32, 8, 6, 1.0), 1e-6),  # the mean over tokens, as released
        "cocoda": ((0.01, "dapo", 1), (64, 8, 3, 0.7), 5e-6),
    }
    for name, expected in wanted.items():
        found = load_recipe(name)
        run = found.run_of(found.rows[-1])
        assert isinstance(run, CoevolveConfig)
        engine, sizes = run.engine, run.coevolution
        updates = (engine.objective.kl_coefficient, engine.objective.loss_type, engine.mini_batches)
        tried = (sizes.tasks_per_step, sizes.group_size, sizes.epochs, sizes.temperature)
        assert (updates, tried, engine.optimizer.learning_rate) == expected


def test_rows_are_run_and_stand_beside_the_paper(tmp_path):
    """A finished row is shown with its figure and not run again; an unknown one is refused."""
    folder = tmp_path / "runs"
    row = ("--row", "no metadata loop")
    first = recipe("tooldna", "--output", folder, *row)
    assert first.exit_code == 0, first.output
    assert "44.5   0.0      2" in first.stdout
    written = (folder / "no-metadata-loop" / "log.jsonl").read_bytes()
    again = recipe("tooldna", "--output", folder, *row)
    assert again.exit_code == 0, again.output
    assert (folder / "no-metadata-loop" / "log.jsonl").read_bytes() == written
    assert recipe("tooldna", "--row", "all").exit_code == 2
    with pytest.raises(UsageError, match="there are cocoda, seal"):
        load_recipe("tooldna2")


def test_a_rehearsal_writes_nothing(tmp_path, monkeypatch):
    """A dry run says what each row would do, and wants the keys that the run wants."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert "set OPENAI_API_KEY" in recipe("tooldna", "--dry-run").stderr
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    told = recipe("tooldna", "--output", tmp_path / "runs", "--dry-run")
    assert told.exit_code == 0, told.output
    assert told.stdout.count("to report") == 4
    assert not (tmp_path / "runs").exists()
    shown = CliRunner().invoke(main, ["recipe", "tooldna"]).stdout
    assert "dialogues" in shown
    assert "50.3" in shown
