"""Options that several commands share, and short ways to declare others."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast
from urllib.parse import quote

import click
from click.core import ParameterSource

from agentkit.errors import UsageError

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]

DEFAULT_MODEL = "local:smollm2-135m"
MODEL_HELP = "The model: local:NAME, local:/path/to/file.gguf, openai:NAME, litellm:NAME, ..."

FOLDER = ".agentkit"
"""Where commands keep what they write, in the project's folder or else in the working folder."""

LIBRARY, EVALUATIONS = "library.db", "evaluations.db"
"""Answers to benchmarks have a store of their own, so that they stay out of the library's."""


def option(*names: str, **settings: Any) -> Decorator:
    """``click.option`` whose help shows the default and the variable, where there is one."""
    settings.setdefault("show_default", settings.get("default") not in {None, ""})
    settings.setdefault("show_envvar", "envvar" in settings)
    return click.option(*names, **settings)


def number(*names: str, low: int = 1, metavar: str = "N", **settings: Any) -> Decorator:
    """An option that takes a whole number of at least ``low``."""
    return option(*names, type=click.IntRange(min=low), metavar=metavar, **settings)


def seconds(*names: str, metavar: str = "SECONDS", **settings: Any) -> Decorator:
    """An option that takes a positive number, of seconds for the most part."""
    positive = click.FloatRange(min=0, min_open=True)
    return option(*names, type=positive, metavar=metavar, **settings)


def several(*names: str, help: str, **settings: Any) -> Decorator:  # noqa: A002 - click's word
    """An option that may be given several times."""
    words = f"{help.removesuffix('.')}; may be given several times."
    return option(*names, multiple=True, help=words, **settings)


def flag(*names: str, help: str, **settings: Any) -> Decorator:  # noqa: A002 - click's word
    """An option without a value."""
    return click.option(*names, is_flag=True, help=help, **settings)


def command(
    name: str | None = None, *, group: click.Group | None = None, more: str = "", **settings: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """Declare a command whose docstring ends with examples, which help shows as they are written.

    Args:
        name: Its name; that of the function by default.
        group: The group that it belongs to.
        more: What help shows behind the examples.
        settings: As for ``click.Command``.
    """

    def declare(function: Callable[..., Any]) -> click.Command:
        words, _, examples = inspect.cleandoc(function.__doc__ or "").partition("\n\nExamples:\n")
        parts = [f"Examples:\n{examples}"] if examples else []
        epilog = "\n\n".join(f"\b\n{part}" for part in (*parts, more) if part)
        declared = click.command(name, click.Command, help=words, epilog=epilog or None, **settings)
        made = declared(function)
        if group is not None:
            group.add_command(made)
        return made

    return declare


json_option = flag("--json", "as_json", help="Print JSON instead of a table.")
reason_option = option("--reason", default="", help="Why, for the log.")
yes_option = flag("--yes", help="Do not ask.")
at_option = number("--at", low=0, metavar="VERSION", help="An earlier version.")
store_option = option(
    "--store",
    "store_url",
    metavar="URL",
    envvar="AGENTKIT_STORE",
    default=f"sqlite:///{FOLDER}/{LIBRARY}",
    help="Where definitions and episodes are kept, such as sqlite:///library.db.",
)


def common_options(function: Decorated) -> Decorated:
    """Give a command ``--store`` and ``--json``."""
    return cast("Decorated", store_option(json_option(function)))


tools_option = several(
    "--tools",
    "targets",
    metavar="MODULE:NAME|FILE.py[:NAME]",
    help="Python tools, whose code runs",
)
library_option = option(
    "--library",
    "library_place",
    metavar="FILE|URL",
    help="Take definitions from an artifact or another store instead of --store; it is only read.",
)
answers_option = option(
    "--answers",
    metavar="URL",
    default=f"sqlite:///{FOLDER}/{EVALUATIONS}",
    help="Where the answers of evaluations are kept; known ones are not asked again.",
)
conflict_option = option(
    "--on-conflict",
    type=click.Choice(["error", "skip", "replace", "suffix"]),
    default="error",
    help="When a name stands for another definition: report it, keep the old one, take the new "
    "one, or add the new one as NAME__2.",
)
_pin = number(
    "--pin",
    low=0,
    metavar="VERSION",
    help="Use this version of the library, whatever is promoted.",
)
_frozen = flag("--frozen", help="Refuse to start where your tools' code and the library differ.")
_model_name = option(
    "--model", metavar="NAME", envvar="AGENTKIT_MODEL", default=DEFAULT_MODEL, help=MODEL_HELP
)
_adapter = option(
    "--adapter",
    metavar="FILE",
    help="A LoRA adapter (GGUF) for a local model, such as training exports.",
)


def binding_options(command: Decorated) -> Decorated:
    """Give a command ``--pin`` and ``--frozen``."""
    return cast("Decorated", _pin(_frozen(command)))


def model_option(command: Decorated) -> Decorated:
    """Give a command ``--model`` and ``--adapter``; it gets one name for both, as ``model``."""

    @wraps(command)
    def named(*arguments: Any, model: str, adapter: str | None, **others: Any) -> Any:
        name = model if adapter is None else adapted_name(model, adapter)
        return command(*arguments, model=name, **others)

    return cast("Decorated", _model_name(_adapter(named)))


def adapted_name(model: str, adapter: str) -> str:
    """The name of a local model with an adapter, as ``resolve_model`` takes it.

    Raises:
        UsageError: The model does not run in this process.

    Example:
        >>> adapted_name("local:smollm2-135m", "my shop.gguf")
        'local:smollm2-135m?adapter=my%20shop.gguf'
    """
    if not model.startswith("local:"):
        raise UsageError(
            f"--adapter adds to the weights of a local model, and {model} computes elsewhere; "
            "choose one with --model local:NAME"
        )
    return f"{model}?adapter={quote(adapter)}"


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
