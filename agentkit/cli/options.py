"""Commands declare options and arguments once, in the signature of a function.

``limit: int = 20`` behind the ``*`` is the option ``--limit N``, and what the docstring says of it
under ``Args`` is its help; a name in brackets there is what help calls its value. The type says
what it takes: ``bool`` makes a flag, ``Literal`` a choice, a tuple lets it be given several times.
A parameter whose type is a dataclass becomes one option per field.

Options shared by several commands have a type of their own below and are described here.

Args:
    store_url (URL): The store of definitions and episodes, such as sqlite:///library.db.
    as_json: Print JSON instead of a table.
    reason (TEXT): Why, for the log.
    at (VERSION): Use an earlier library version.
    model (NAME): The model: local:NAME, local:/path/to/file.gguf, openai:NAME, litellm:NAME, ...
    targets (MODULE:NAME|FILE.py[:NAME]): Python tools to load and run
    library_place (FILE|URL): Read definitions from an artifact or another store, not from --store.
    answers (URL): The store of evaluation answers; a task is never asked twice.
    on_conflict: If a name already has another definition: report an error, keep the old one, or
        take the new one.
    pin (VERSION): Use this library version, whatever is promoted.
    refine: Let the model revise its calls before they run.
    yes: Do not ask.
"""

from __future__ import annotations

import inspect
import re
import shlex
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from agentkit.cli.output import Output
from agentkit.episodes import RefineMode

DEFAULT_MODEL = "local:smollm2-135m"
FOLDER = ".agentkit"
"""The folder for files commands write, in the project's folder or the working folder."""

LIBRARY, EVALUATIONS = "library.db", "evaluations.db"
"""Answers to benchmarks have a store of their own, so that they stay out of the library's."""

_ENTRY = re.compile(r"^ {4}(\w+)(?: \((.+?)\))?: (.+(?:\n {8}.+)*)", re.MULTILINE)
_SECTION = re.compile(r"(?:\A|\n\n)(?:Args|Attributes):\n((?: {4}.*(?:\n|\Z))+)")


@dataclass(frozen=True, slots=True, eq=False)
class Declared:
    """What a parameter's type does not say: option names and click settings."""

    names: tuple[str, ...]
    settings: Mapping[str, Any]


def option(*names: str, **settings: Any) -> Declared:
    """An option.

    Args:
        names: How it is typed; by default the parameter's name behind two dashes.
        settings: As for ``click.Option``; ``low`` is the smallest number, 1 by default.
    """
    return Declared(names, settings)


def argument(metavar: str, **settings: Any) -> Declared:
    """An argument, and what help calls it."""
    return Declared((), {"metavar": metavar, **settings})


class ProjectCommand(click.Command):
    """A command that takes defaults of its parameters from the project, also one of a plugin."""


def command(
    name: str = "", *, group: click.Group | None = None, more: str = "", **settings: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command of a function. One that returns an ``Output`` has the option ``--json``.

    Args:
        name: Its name; that of the function by default.
        group: The group that it belongs to.
        more: What help shows behind the examples of the docstring.
        settings: As for ``click.Command``.
    """

    def declare(function: Callable[..., Any]) -> click.Command:
        words, _, examples = inspect.cleandoc(function.__doc__ or "").partition("\n\nExamples:\n")
        parts = [f"Examples:\n{examples}"] if examples else []
        epilog = "\n\n".join(f"\b\n{part}" for part in (*parts, more) if part)
        groups: dict[str, tuple[type, list[str]]] = {}
        params: list[click.Parameter] = []
        hints = get_type_hints(function, include_extras=True)
        help_texts = _parameter_help(words)
        finds = hints.get("return") is Output
        for one in inspect.signature(function).parameters.values():
            hint = hints[one.name]
            if isinstance(hint, type) and is_dataclass(hint):
                found = list(_fields(hint))
                groups[one.name] = hint, [str(each.name) for each in found]
                params += found
            elif one.kind is one.KEYWORD_ONLY:
                params.append(_option(one.name, hint, one.default, help_texts))
            else:
                params.append(_argument(one.name, hint, one.default))

        if finds:
            params.append(_option("as_json", AsJson, inspect.Parameter.empty, {}))

        def run(**values: Any) -> None:
            for group_name, (kind, names) in groups.items():
                values[group_name] = kind(**{each: values.pop(each) for each in names})
            as_json = bool(values.pop("as_json")) if finds else False
            found = function(**values)
            if isinstance(found, Output):
                found.show(as_json=as_json)

        made = ProjectCommand(
            name or function.__name__,
            callback=run,
            params=params,
            help=_SECTION.sub("", words),
            epilog=epilog or None,
            **settings,
        )
        if group is not None:
            group.add_command(made)
        return made

    return declare


def _parameter_help(docstring: str) -> dict[str, tuple[str, str]]:
    """Metavar and help text of each parameter, from a docstring."""
    found = _SECTION.search(docstring)
    entries = _ENTRY.findall(found[1]) if found else ()
    return {name: (metavar, " ".join(text.split())) for name, metavar, text in entries}


def _fields(kind: type) -> Iterator[click.Option]:
    """The options that the fields of a dataclass are."""
    hints = get_type_hints(kind, include_extras=True)
    help_texts = _parameter_help(inspect.getdoc(kind) or "")
    for one in fields(kind):
        yield _option(one.name, hints[one.name], one.default, help_texts)


def _unwrapped(hint: Any) -> tuple[Any, Declared]:
    """The type without ``Annotated`` and ``None``, and what was declared."""
    declared = Declared((), {})
    while get_origin(hint) in {Annotated, Union, types.UnionType}:
        kinds = get_args(hint)
        if get_origin(hint) is Annotated:
            declared = kinds[1]
            kinds = kinds[:1]
        hint = next(one for one in kinds if one is not types.NoneType)
    return hint, declared


def _argument(name: str, hint: Any, default: Any) -> click.Argument:
    kind, declared = _unwrapped(hint)
    has_default = default is not inspect.Parameter.empty
    settings: dict[str, Any] = {"required": not has_default, **declared.settings}
    settings.setdefault("metavar", f"[{name.upper()}]" if has_default else name.upper())
    if get_origin(kind) is tuple:
        settings["nargs"] = -1
        kind = get_args(kind)[0]
    elif has_default and default is not None:
        settings["default"] = default
    settings.setdefault("type", _type(kind, 1))
    return click.Argument([name], **settings)


def _option(
    name: str, hint: Any, default: Any, help_texts: Mapping[str, tuple[str, str]]
) -> click.Option:
    kind, declared = _unwrapped(hint)
    settings = dict(declared.settings)
    metavar, words = help_texts.get(name) or _parameter_help(__doc__ or "").get(name, ("", ""))
    if default is not inspect.Parameter.empty and default is not MISSING:
        settings["default"] = default
    low = settings.pop("low", 1)
    if get_origin(kind) is tuple:
        kind = get_args(kind)[0]
        if "nargs" not in settings:
            words = f"{words.removesuffix('.')}; may be given several times."
            settings["multiple"] = True
    if kind is bool:
        settings["is_flag"] = True
    else:
        settings.setdefault("type", _type(kind, low))
        usual = {int: "N", float: "SECONDS"}.get(kind)
        settings["metavar"] = metavar or usual
    shown = settings.get("default") not in {None, "", False, ()}
    settings = {"show_default": shown, "show_envvar": "envvar" in settings, **settings}
    names = declared.names or (f"--{name.replace('_', '-')}",)
    return click.Option([*names, name], **{**settings, "help": words})


def _type(kind: Any, low: int) -> Any:
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    if kind is int:
        return click.IntRange(min=low)
    if kind is float:
        return click.FloatRange(min=0, min_open=True)
    return click.Path(path_type=Path) if kind is Path else click.STRING


# Options of several commands.
StoreUrl = Annotated[
    str, option("--store", envvar="AGENTKIT_STORE", default=f"sqlite:///{FOLDER}/{LIBRARY}")
]
AsJson = Annotated[bool, option("--json", default=False)]
Reason = Annotated[str, option(default="")]
FromZero = Annotated[int, option(low=0)]
AtVersion = Annotated[int | None, option(low=0, default=None)]
ModelName = Annotated[str, option(envvar="AGENTKIT_MODEL", default=DEFAULT_MODEL)]
Targets = Annotated[tuple[str, ...], option("--tools", default=())]
LibraryPlace = Annotated[str | None, option("--library", default=None)]
Answers = Annotated[str, option(default=f"sqlite:///{FOLDER}/{EVALUATIONS}")]
OnConflict = Annotated[Literal["error", "skip", "replace"], option(default="error")]
Pin = Annotated[int | None, option(low=0, default=None)]
Refine = Annotated[RefineMode, option(default="none")]


def is_typed(parameter: str) -> bool:
    """Whether a parameter of the command that runs was typed, and not taken from a default."""
    context = click.get_current_context(silent=True)
    source = None if context is None else context.get_parameter_source(parameter)
    return source is ParameterSource.COMMANDLINE


def typed_options() -> dict[str, str]:
    """The options of the running command that were typed, by parameter."""
    params = click.get_current_context().command.params
    return {one.name: one.opts[-1] for one in params if one.name and is_typed(one.name)}


def typed(option: str, parameter: str) -> str:
    """An option as it was typed, for the commands that an output names; else nothing.

    Args:
        option: Its name, without dashes.
        parameter: The name of the command's parameter.
    """
    if not is_typed(parameter):
        return ""
    return f" --{option} {shlex.quote(str(click.get_current_context().params[parameter]))}"
