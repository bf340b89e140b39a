"""One door to all benchmarks: files of tasks here, named ones in plugins."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from agentkit.cli.main import main
from agentkit.errors import DatasetError, UsageError
from agentkit.evaluation import loading
from agentkit.evaluation.loading import PUBLIC, load_benchmark


@pytest.fixture
def no_plugins(monkeypatch):
    """As where agentkit-bench is not installed."""
    monkeypatch.setattr(loading, "named_benchmarks", dict)


def test_a_path_loads_tasks(write, row, tools):
    """Anything else is a file of tasks."""
    path = write(row())
    assert load_benchmark(str(path), tools=tools).tasks[0].offered == ("add", "book_table")


def test_an_environment_may_be_named(shop):
    """The world of a file's tasks may be given as the place of a class."""
    tasks = str(shop / "shop_tasks.jsonl")
    benchmark = load_benchmark(tasks, environment=str(shop / "shop.py"))
    assert (len(benchmark.tasks), benchmark.left_out) == (10, ())


def test_a_file_without_a_task_raises_with_the_first_reason(write, row):
    """Nothing to ask is an error here, and says what is wrong with the rows."""
    path = write(row(expects={}), row(id="u", expects={}))
    with pytest.raises(DatasetError, match="none of its 2 rows can be asked; the first: tasks"):
        load_benchmark(str(path))


def test_an_absent_file_raises():
    """A path without a file says what is expected there."""
    with pytest.raises(DatasetError, match="does not exist"):
        load_benchmark("absent.jsonl")


@pytest.mark.parametrize("name", PUBLIC)
def test_public_benchmarks_name_their_plugin(name, no_plugins):
    """Without the plugin each says what to install."""
    with pytest.raises(UsageError, match=f"{name} needs the plugin .* pip install agentkit-bench"):
        load_benchmark(name)


def test_the_command_says_the_pip_line(no_plugins, tmp_path, monkeypatch):
    """``agentkit eval bfcl`` without the plugin is misuse that one line of pip mends."""
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["eval", "bfcl"])
    assert done.exit_code == 2
    assert "pip install agentkit-bench" in done.stderr
