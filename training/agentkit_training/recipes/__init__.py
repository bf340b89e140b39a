"""A paper's experiment as a file: its settings, what is substituted, and its table beside ours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from agentkit.errors import UsageError
from agentkit_training.config.jobs import CoevolveConfig, SftConfig, named_run
from agentkit_training.config.reading import parse_config
from agentkit_training.runs import RunDirectory


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One row of a paper's table.

    Attributes:
        name: What it is called in the table.
        paper: The paper's figure, in per cent.
        ablation: The named configuration that it is; empty for none.
        changes: Keys that it has other than the recipe.
        is_base: Whether it is the policy before training, which any run measures.
    """

    name: str
    paper: float
    ablation: str = ""
    changes: tuple[str, ...] = ()
    is_base: bool = False

    @property
    def folder(self) -> str:
        """The name of its run's folder."""
        return re.sub(r"\W+", "-", self.name.lower())


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """An experiment of a paper.

    Attributes:
        paper: Paper and table.
        figure: What the table has.
        substitutes: What is not as in the paper, and why.
        time: How long it takes, by machine.
        config: The configuration of all rows.
        rows: The rows, in the order of the table.
    """

    paper: str
    figure: str
    substitutes: tuple[str, ...]
    time: Mapping[str, str]
    config: Mapping[str, Any]
    rows: tuple[Row, ...]

    def run_of(
        self, row: Row, *, changes: Sequence[str] = (), seed: int = 0
    ) -> SftConfig | CoevolveConfig:
        """The run of a row.

        Args:
            row: One that is no base.
            changes: Keys that this machine has other than the paper's, such as the weights.
            seed: Of the run and its tasks.

        Raises:
            UsageError: The configuration can not be used.
        """
        text = yaml.safe_dump(dict(self.config))
        given = [*changes, *row.changes, f"tasks.seed={seed}"]
        if "sft" in self.config:
            return parse_config(text, SftConfig, name=row.name, changes=[*given, f"seed={seed}"])
        given.append(f"coevolution.seed={seed}")
        config = parse_config(text, CoevolveConfig, name=row.name, changes=given)
        return named_run(row.ablation, config) if row.ablation else config

    def results(self, folder: Path) -> Iterator[tuple[Row, float | None, int]]:
        """Each row, our figure in per cent, and over how many tasks; None where no run has ended.

        Args:
            folder: Where the runs of the rows are.
        """
        runs = {row.name: _measured(folder / row.folder) for row in self.rows}
        bases = [found[0] for found in runs.values() if found]
        for row in self.rows:
            found = runs[row.name]
            if row.is_base:
                accuracy, tasks = bases[0] if bases else (None, 0)
            else:
                accuracy, tasks = found[-1] if len(found) > 1 else (None, 0)
            yield row, None if accuracy is None else 100 * accuracy, tasks


def recipes() -> tuple[str, ...]:
    """The names of the recipes."""
    here = resources.files(__package__).iterdir()
    return tuple(sorted(one.name.removesuffix(".yaml") for one in here if one.name[-5:] == ".yaml"))


def load_recipe(name: str) -> Recipe:
    """A recipe by its name.

    Raises:
        UsageError: There is none of that name.

    Example:
        >>> load_recipe("seal").rows[-1]
        Row(name='SEAL', paper=40.25, ablation='seal', changes=(), is_base=False)
    """
    if name not in recipes():
        raise UsageError(f"there is no recipe {name!r}; there are {', '.join(recipes())}")
    text = resources.files(__package__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    return parse_config(text, Recipe, name=f"{name}.yaml")


def _measured(folder: Path) -> Sequence[tuple[float, int]]:
    """Accuracy on the test part and number of tasks, before and after; what there is of it."""
    if not (folder / "config.yaml").is_file():
        return ()
    records = (one for one in RunDirectory(folder).records() if one.phase == "test")
    return [(one.figures["accuracy"], int(one.figures["tasks"])) for one in records]
