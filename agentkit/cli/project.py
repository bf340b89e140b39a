"""The project: ``agentkit.toml``, which gives the options of the commands their defaults."""

from __future__ import annotations

import difflib
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentkit.cli.options import EVALUATIONS, FOLDER, LIBRARY
from agentkit.errors import UsageError
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.gates import GateConfig
from agentkit.library.opening import file_of
from agentkit.retrieval.retriever import Retriever

if TYPE_CHECKING:  # pydantic is loaded where there is a project to read
    from agentkit.cli.project_file import ProjectFile, TableValue

FILE = "agentkit.toml"
_MOST_BYTES = 1_000_000
WITHOUT = frozenset({"init", "demo", "models"})
"""Commands that have nothing to do with the project they are started in."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Project:
    """What the commands that are started in a folder work with.

    Attributes:
        root: The folder of ``agentkit.toml``; the working folder where there is none.
        defaults: Values of options and arguments, by the name of the parameter.
        tables: Options of single commands, as written.
        policy: The stages that a proposal goes through.
        rules: The knobs of its comparisons.
        retriever: Finds the tools of a request; None for the default.
        keys: What the file says, by key: how a message names it.
    """

    root: Path
    defaults: Mapping[str, TableValue] = field(default_factory=dict)
    tables: Mapping[str, Mapping[str, TableValue]] = field(default_factory=dict)
    policy: LifecyclePolicy = field(default_factory=LifecyclePolicy)
    rules: GateConfig = field(default_factory=GateConfig)
    retriever: Retriever | None = None
    keys: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def names_modules(self) -> bool:
        """Whether its code is named as ``package.module``, and not by files alone."""
        code = (*self.keys.get("tools", ()), *self.keys.get("environment", ()))
        return any(one and not one.partition(":")[0].endswith(".py") for one in code)

    def placed(self, message: str) -> str:
        """A message with the key of the file before it, where it is about the value of one."""
        for key, values in self.keys.items():
            if any(message.startswith(one) or repr(one) in message for one in values if one):
                return f"{self.root / FILE}: {key}: {message}"
        return message

    def defaults_of(
        self, name: str, command: click.Command, context: click.Context
    ) -> dict[str, TableValue]:
        """The values of one command's parameters.

        Raises:
            UsageError: Its table names an option that it lacks, or a value that it does not take.
        """
        table = self.tables.get(name, {})
        options = {_key(word): one for one in command.params for word in _words_of(one)}
        own = {}
        for key, value in table.items():
            place = f"{self.root / FILE}: [{name}] {key}"
            option = options.get(_key(key))
            if option is None or option.name is None:
                near = difflib.get_close_matches(_key(key), options, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise UsageError(f"{place}: 'agentkit {name}' has no such option{hint}")
            try:
                option.type_cast_value(context, value)
            except click.BadParameter as error:
                raise UsageError(f"{place}: {error.message}") from error
            own[option.name] = value
        return {**self.defaults, **own}


def find_project(start: Path | None = None) -> Project:
    """The project that a folder belongs to: its own ``agentkit.toml``, or the nearest one above.

    Args:
        start: The folder; the working folder by default.

    Raises:
        UsageError: The file can not be read, or says something that no command knows.
    """
    folder = (start or Path.cwd()).absolute()
    root = next((one for one in (folder, *folder.parents) if (one / FILE).is_file()), None)
    if root is None:
        return Project(root=folder)
    try:
        written = _read(root / FILE)
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{root / FILE}: {error}") from error
    from agentkit.cli.project_file import ProjectFile

    return _project(root, ProjectFile.read(written, root / FILE))


def _read(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        message = f"it has more than {_MOST_BYTES:,} bytes; was another file meant?"
        raise ValueError(message)
    return tomllib.loads(content.decode())


def give_defaults(context: click.Context, known: Mapping[str, object]) -> None:
    """Give the command that is about to run what its project says.

    Args:
        context: Of the outermost group.
        known: Its own commands; those of plugins are left alone.

    Raises:
        UsageError: The project is not as it should be.
    """
    name = context.invoked_subcommand
    if name is None or name in WITHOUT or name not in known:
        return
    project = find_project()
    unknown = sorted(project.tables.keys() - known.keys())
    if unknown:
        raise UsageError(f"{project.root / FILE}: [{unknown[0]}] is no table of it, and no command")
    assert isinstance(context.command, click.Group)
    command = context.command.get_command(context, name)
    if isinstance(command, click.Group):
        if name in project.tables:
            words = f"'agentkit {name}' has commands of its own, whose options can not be set here"
            raise UsageError(f"{project.root / FILE}: [{name}]: {words}")
        values = {leaf: dict(project.defaults) for leaf in command.list_commands(context)}
        context.default_map = {name: values}
    elif command is not None:
        context.default_map = {name: project.defaults_of(name, command, context)}
    context.obj = project
    if project.names_modules and str(project.root) not in sys.path:
        sys.path.insert(0, str(project.root))  # found wherever the command is started


def current_project() -> Project:
    """The project of the command that runs; one that says nothing, outside of commands."""
    context = click.get_current_context(silent=True)
    found = None if context is None else context.find_object(Project)
    return Project(root=Path()) if found is None else found


def _project(root: Path, read: ProjectFile) -> Project:
    """The project that a file describes; its paths are seen from its folder."""
    store = read.store or f"sqlite:///{FOLDER}/{LIBRARY}"
    tools = [_placed(one, root) for one in read.tools]
    tasks, held_out, environment = (
        _placed(one, root) for one in (read.tasks, read.held_out, read.environment)
    )
    values: dict[str, TableValue | None] = {
        "store_url": _placed_url(store, root),
        "answers": _placed_url(f"sqlite:///{FOLDER}/{EVALUATIONS}", root),
        "targets": tools,
        "benchmark": tasks,
        "tasks": held_out or tasks,
        "environment": environment,
        "model": read.model,
        "judge": read.judge,
        "instructions": read.instructions,
        "shadow": read.gates is not None and read.gates.shadow,
        "canary": read.gates is not None and read.gates.canary,
    }
    keys = {
        "store": [read.store or ""],
        "tools": tools,
        "tasks": [tasks],
        "held_out": [held_out],
        "environment": [environment],
        "model": [read.model or ""],
        "judge": [read.judge or ""],
    }
    return Project(
        root=root,
        defaults={name: value for name, value in values.items() if value},
        tables=read.tables,
        policy=LifecyclePolicy() if read.gates is None else read.gates.policy,
        rules=GateConfig() if read.gates is None else read.gates.rules,
        retriever=None if read.retrieval is None else read.retrieval.retriever,
        keys=keys,
    )


def _placed(place: str | None, root: Path) -> str:
    """A file of the project as commands reach it; names of modules and benchmarks stay."""
    if not place:
        return ""
    path, colon, rest = place.partition(":")
    is_file = path.endswith((".py", ".jsonl", ".json", ".csv")) or (root / path).exists()
    return f"{_near(root / Path(path).expanduser())}{colon}{rest}" if is_file else place


def _placed_url(url: str, root: Path) -> str:
    """The URL of a store whose file or folder is seen from the project's folder."""
    file = file_of(url)
    if file is not None:
        return f"sqlite:///{_near(root / file)}"
    scheme, _, path = url.partition(":")
    if scheme == "dir" and not path.startswith("//"):
        return f"dir:{_near(root / Path(path).expanduser())}"
    return url


def _near(path: Path) -> Path:
    """A path as one would type it: relative where it lies in the working folder."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _key(word: str) -> str:
    return word.lstrip("-").replace("-", "_")


def _words_of(parameter: click.Parameter) -> list[str]:
    return parameter.opts if isinstance(parameter, click.Option) else []
