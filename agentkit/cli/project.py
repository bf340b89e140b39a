"""The project: ``agentkit.toml``, which gives commands their defaults, and ``agentkit init``.

The file is read strictly: a key that nothing knows is an error.
"""

from __future__ import annotations

import difflib
import json
import os
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import click

from agentkit.cli.boundary import FIRST_PARTY, plugin_command
from agentkit.cli.options import (
    DEFAULT_MODEL,
    EVALUATIONS,
    FOLDER,
    LIBRARY,
    ModelName,
    ProjectCommand,
    argument,
    command,
)
from agentkit.cli.output import Output, say
from agentkit.episodes.replacing import first_stray
from agentkit.errors import ReadingLimitError, StoreError, UsageError
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.gates import GateConfig
from agentkit.library.opening import file_of
from agentkit.reading import open_plain, read_stored
from agentkit.retrieval.cascade import default_retriever
from agentkit.retrieval.retriever import Retriever

FILE = "agentkit.toml"
WITHOUT = frozenset({"init", "demo", "models"})
"""Commands that have nothing to do with the project they are started in."""

_Kinds = Mapping[str, type | tuple[type, ...]]
_NUMBER = (int, float)
_TOP: _Kinds = {
    **dict.fromkeys(("store", "tasks", "held_out", "environment", "model", "judge"), str),
    "tools": list,
    "instructions": str,
    "gates": dict,
    "retrieval": dict,
}
_STAGES: _Kinds = {"shadow": bool, "canary": bool, "canary_share": _NUMBER}
_GATES: _Kinds = {**_STAGES, **{one.name: _NUMBER for one in fields(GateConfig)}}
_RETRIEVAL: _Kinds = {**dict.fromkeys(("shortlist", "offer", "token_budget"), int), "vectors": str}


PROMOTED = "promoted"
"""Value of ``vectors``: the word vectors that the store's log says are promoted."""


def own_folder(path: Path | None = None) -> Path:
    """The folder ``.agentkit``, which a checkout may hold as a link or with links and pipes in it.

    Args:
        path: The folder; None for the one of the project.

    Raises:
        StoreError: It, or something in it, is not what agentkit makes.
    """
    folder = path or current_project().root / FOLDER
    if (stray := first_stray(folder)) is not None:
        words = f"and agentkit does not write outside of {folder}; delete it"
        raise StoreError(f"{stray[0]} is {stray[1]}, {words}")
    return folder


def vectors_file(digest: str) -> Path:
    """Where a project keeps trained word vectors of a digest."""
    return own_folder() / "vectors" / f"{digest[:16]}.vectors"


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
        promoted: How a retriever is made with the word vectors that the store says are promoted;
            None where ``vectors = "promoted"`` is not asked for.
        keys: The files and modules that the file names, by key.
    """

    root: Path
    defaults: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    policy: LifecyclePolicy = field(default_factory=LifecyclePolicy)
    rules: GateConfig = field(default_factory=GateConfig)
    retriever: Retriever | None = None
    promoted: Mapping[str, int] | None = None
    keys: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def defaults_of(
        self, name: str, command: click.Command, context: click.Context
    ) -> dict[str, Any]:
        """The values of one command's parameters.

        Raises:
            UsageError: Its table names an option that it lacks, or a value that it does not take.
        """
        options = {
            _key(word): one
            for one in command.params
            if isinstance(one, click.Option)
            for word in one.opts
        }
        own = {}
        for key, value in self.tables.get(name, {}).items():
            place = f"{self.root / FILE}: [{name}] {key}"
            option = options.get(_key(key))
            if option is None or option.name is None:
                near = difflib.get_close_matches(_key(key), options, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise UsageError(f"{place}: 'agentkit {name}' has no such option{hint}")
            _check({key: value}, {key: _kind_of(option)}, place.removesuffix(key))
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
        UsageError: The file cannot be read, or says something that no command knows.
    """
    folder = (start or Path.cwd()).absolute()
    root = next((one for one in (folder, *folder.parents) if (one / FILE).is_file()), None)
    if root is None:
        return Project(root=folder)
    try:
        with open_plain(root / FILE) as file:
            return _project(root, tomllib.loads(read_stored(file).decode()))
    except (OSError, ValueError, RecursionError, ReadingLimitError, UsageError) as error:
        raise UsageError(f"{root / FILE}: {error}") from error


def give_defaults(context: click.Context, known: Mapping[str, object]) -> None:
    """Give the command that is about to run what its project says.

    Args:
        context: The context of the outermost group.
        known: Its own commands; of those of plugins, the ones made by ``command`` take part.

    Raises:
        UsageError: The project is not as it should be.
    """
    name = context.invoked_subcommand
    if name is None or name in WITHOUT:
        return
    assert isinstance(context.command, click.Group)
    command = context.command.get_command(context, name)
    if name not in known and not isinstance(command, ProjectCommand):
        return
    project = find_project()
    for table in sorted(project.tables.keys() - known.keys() - FIRST_PARTY.keys()):
        if not isinstance(plugin_command(table), ProjectCommand):
            raise UsageError(f"{project.root / FILE}: [{table}] is no table of it, and no command")
    if isinstance(command, click.Group):
        if name in project.tables:
            words = f"'agentkit {name}' has commands of its own, whose options cannot be set here"
            raise UsageError(f"{project.root / FILE}: [{name}]: {words}")
        values = {leaf: dict(project.defaults) for leaf in command.list_commands(context)}
        context.default_map = {name: values}
    elif command is not None:
        context.default_map = {name: project.defaults_of(name, command, context)}
    context.obj = project
    if project.keys and str(project.root) not in sys.path:
        sys.path.append(str(project.root))  # its modules are found wherever the command is started


def current_project() -> Project:
    """The project of the command that runs; one that says nothing, outside of commands."""
    context = click.get_current_context(silent=True)
    found = None if context is None else context.find_object(Project)
    return Project(root=Path()) if found is None else found


def _project(root: Path, written: Mapping[str, Any]) -> Project:
    """The project that a file describes; its paths are seen from its folder."""
    tables = {key: one for key, one in written.items() if isinstance(one, dict) and key not in _TOP}
    read = {key: value for key, value in written.items() if key not in tables}
    _check(read, _TOP)
    gates = read.get("gates", {})
    _check(gates, _GATES, "[gates] ")
    retriever, promoted = None, None
    if (retrieval := read.get("retrieval")) is not None:
        _check(retrieval, _RETRIEVAL, "[retrieval] ")
        options = {key: value for key, value in retrieval.items() if key != "vectors"}
        named = retrieval.get("vectors")
        promoted = options if named == PROMOTED else None
        is_file = named is not None and promoted is None
        vectors = {"vectors": root / named} if is_file else {}
        retriever = default_retriever(**options, **vectors)
    tools = [_placed(one, root) for one in read.get("tools", ())]
    tasks, held_out, environment = (
        _placed(read.get(key), root) for key in ("tasks", "held_out", "environment")
    )
    values = {
        "store_url": _placed_url(read.get("store") or f"sqlite:///{FOLDER}/{LIBRARY}", root),
        "answers": _placed_url(f"sqlite:///{FOLDER}/{EVALUATIONS}", root),
        "targets": tools,
        "benchmark": tasks,
        "tasks": held_out or tasks,
        "environment": environment,
        **{key: read.get(key) for key in ("model", "judge", "instructions")},
        **{key: gates.get(key) for key in ("shadow", "canary")},
    }
    named = {"tasks": tasks, "held_out": held_out, "environment": environment}
    return Project(
        root=root,
        defaults={name: value for name, value in values.items() if value},
        tables=tables,
        policy=LifecyclePolicy(**{key: gates[key] for key in _STAGES if key in gates}),
        rules=GateConfig(**{key: gates[key] for key in gates if key not in _STAGES}),
        retriever=retriever,
        promoted=promoted,
        keys={"tools": tools, **{key: [value] for key, value in named.items()}},
    )


def _check(values: Mapping[str, Any], kinds: _Kinds, table: str = "") -> None:
    """Refuse keys that nothing knows, and values of another kind.

    Raises:
        UsageError: With the key and what was meant.
    """
    for key, value in values.items():
        kind = kinds.get(key)
        if kind is None:
            near = difflib.get_close_matches(key, kinds, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(kinds)}"
            raise UsageError(f"{table}{key}: there is no such key; {hint}")
        fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if not fits or (kind is list and not all(isinstance(one, str) for one in value)):
            names = {str: "a text", list: "a list of texts", dict: "a table", bool: "true or false"}
            expected = "a number" if isinstance(kind, tuple) else names.get(kind, "a whole number")
            raise UsageError(f"{table}{key}: {expected} is wanted, got {value!r}")


def _kind_of(option: click.Option) -> type | tuple[type, ...]:
    """What TOML has for the values of an option."""
    if option.multiple:
        return list
    numbers: _Kinds = {"integer": int, "float": _NUMBER, "boolean": bool}
    return numbers.get(option.type.name.removesuffix(" range"), str)


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


SAMPLE = (FILE, "tools.py", "tasks.jsonl")
"""The files to write: settings, a tool with an undocumented constraint, and tasks for it."""


@command()
def init(
    folder: Annotated[
        Path, argument("[FOLDER]", type=click.Path(file_okay=False, path_type=Path), required=False)
    ] = Path(),
    *,
    model: ModelName,
) -> Output:
    """Create a project in FOLDER: agentkit.toml, a sample tool, and tasks that measure it.

    Commands run in the folder or below it take their defaults from agentkit.toml. Existing files
    are never overwritten.

    Examples:
      agentkit init
      agentkit init help-desk --model openai:gpt-4o-mini
    """
    there = [name for name in SAMPLE if os.path.lexists(folder / name)]  # a link leads elsewhere
    if there:
        raise UsageError(
            f"{folder.absolute()} already has {' and '.join(there)}; nothing was written. "
            "Name another folder: agentkit init FOLDER"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name in SAMPLE:
        text = (files("agentkit.cli") / "sample" / name).read_text(encoding="utf-8")
        if name == FILE:
            text = _with_model(text, model)
        (folder / name).write_text(text, encoding="utf-8")
    install = f"agentkit models install {model.partition(':')[2]}"
    typed = [] if folder == Path() else [f"cd {folder}"]
    typed += [install] if model == DEFAULT_MODEL else []
    typed += ["agentkit eval", "agentkit evolve", "agentkit review show last"]
    made = f"created {', '.join(SAMPLE)} in {folder.absolute()}; next:"
    return Output(
        record={"folder": str(folder.absolute()), "files": SAMPLE, "next": typed},
        view=lambda: say("\n  ".join([made, *typed])),
    )


def _with_model(text: str, model: str) -> str:
    """The settings for a model; what a small one needs is left out for others."""
    if model == DEFAULT_MODEL:
        return text
    settings, _, _ = text.partition("# Options of single commands")
    head, _, rest = settings.partition("# Any model:")
    _, _, rest = rest.partition(f'model = "{DEFAULT_MODEL}"\n')
    return f"{head}model = {json.dumps(model, ensure_ascii=False)}\n{rest}".rstrip() + "\n"
