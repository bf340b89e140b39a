"""The folder that verl is started with."""

from __future__ import annotations

import pytest
import yaml

from agentkit import open_store
from agentkit.errors import UsageError
from agentkit_training.config.reading import read_config
from agentkit_training.engines.verl.workspace import VerlSettings
from agentkit_training.errors import ExportError
from agentkit_training.jobs.verl import VerlRun, export_verl
from agentkit_training.tasks.loading import TaskSpec

RUN = VerlRun(model="weights", attempts=4, batch_size=2)


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_settings_come_back_as_they_were(settings, tmp_path):
    """Workers read the very settings that were exported, tasks included."""
    wanted = settings(reward="R2", weights="fixed", constrained=False)
    export = export_verl(wanted, tmp_path, RUN)
    assert read_config(export.folder / "agentkit.yaml", VerlSettings) == wanted


def test_the_files_name_each_other(settings, tmp_path):
    """Verl's configuration leads to the rows and the loops, the loops to the settings."""
    folder = export_verl(settings(), tmp_path / "new" / "folder", RUN).folder
    told = read(folder / "verl.yaml")
    rollout = told["actor_rollout_ref"]["rollout"]
    (loop,) = read(folder / "agent_loop.yaml")
    assert told["data"]["train_files"] == [str(folder / "train.parquet")]
    assert rollout["agent"]["agent_loop_config_path"] == str(folder / "agent_loop.yaml")
    assert rollout["agent"]["default_agent_loop"] == loop["name"]
    assert loop["settings"] == str(folder / "agentkit.yaml")
    assert rollout["n"] == 4


def test_nothing_that_runs_is_written(settings, tmp_path):
    """The folder holds data and YAML: code is imported from the package by name."""
    export = export_verl(settings(), tmp_path, RUN)
    suffixes = {path.suffix for path in export.folder.iterdir()}
    assert suffixes == {".parquet", ".yaml"}
    assert export.rows == {"train": 4, "validation": 2, "test": 2}


def test_an_empty_store_gets_the_tasks_tools(settings, tmp_path):
    """The first version of the library is there before a worker asks; a second export keeps it."""
    wanted = settings(library=f"sqlite:///{tmp_path}/library.db")
    assert export_verl(wanted, tmp_path / "run", RUN).library_version == 1
    assert export_verl(wanted, tmp_path / "run", RUN).library_version == 1
    store = open_store(wanted.library)
    assert len(list(store.load())) > 1
    store.close()


def test_a_library_in_memory_is_refused(settings, tmp_path):
    """Workers are other processes, on other nodes: each would have a library of its own."""
    with pytest.raises(UsageError, match="each process has for itself"):
        export_verl(settings(library="memory:"), tmp_path, RUN)


def test_nothing_to_train_on_is_an_error(tmp_path):
    """An export without a task says so before a cluster is started for it."""
    nothing = VerlSettings(tasks=TaskSpec(source="arithmetic", train=0))
    with pytest.raises(ExportError, match="no tasks to train on"):
        export_verl(nothing, tmp_path, RUN)


def test_a_folder_that_can_not_be_written_is_named(settings, tmp_path):
    """What stands in the way is told with its path."""
    (tmp_path / "file").write_text("here")
    with pytest.raises(ExportError, match="file can not be written"):
        export_verl(settings(), tmp_path / "file", RUN)
