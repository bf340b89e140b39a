"""Options that several commands share."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from agentkit_training.distributed.failing import company

_NAME = "agentkit-train"

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def run_options(command: Decorated) -> Decorated:
    """The configuration, the folder of the run, changes of single keys, resuming, a dry run."""
    for decorate in (
        click.option(
            "--dry-run",
            is_flag=True,
            help="Build everything but the weights, say what would be done, and stop.",
        ),
        click.option("--resume", is_flag=True, help="Go on with the run that is in the folder."),
        click.option(
            "--set",
            "changes",
            multiple=True,
            metavar="KEY=VALUE",
            help="Change a key of the configuration, such as engine.optimizer.learning_rate=1e-5.",
        ),
        click.option(
            "--output",
            "folder",
            required=True,
            type=click.Path(path_type=Path, file_okay=False),
            help="Folder of the run.",
        ),
        click.argument("config", type=click.Path(path_type=Path)),
    ):
        command = decorate(command)
    return command


def command_line() -> str:
    """What was typed, for the record of the run; with how many processes, where there are more."""
    name = Path(sys.argv[0]).name
    typed = shlex.join([_NAME if name.endswith(".py") else name, *sys.argv[1:]])
    _, world = company()
    return typed if world == 1 else f"{typed}  # in {world} processes"
