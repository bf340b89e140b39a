"""Options that several commands share."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast
from urllib.parse import quote

import click
from click.core import ParameterSource

from agentkit.errors import UsageError

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

DEFAULT_MODEL = "local:smollm2-135m"
MODEL_HELP = "The model: local:NAME, local:/path/to/file.gguf, openai:NAME, litellm:NAME, ..."


FOLDER = ".agentkit"
"""Where commands keep what they write, in the project's folder or else in the working folder."""

LIBRARY, EVALUATIONS = "library.db", "evaluations.db"
"""Answers to benchmarks have a store of their own, so that they stay out of the library's."""


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")

store_option = click.option(
    "--store",
    "store_url",
    metavar="URL",
    envvar="AGENTKIT_STORE",
    show_envvar=True,
    default=f"sqlite:///{FOLDER}/{LIBRARY}",
    show_default=True,
    help="Where definitions and episodes are kept, such as sqlite:///library.db.",
)

tools_option = click.option(
    "--tools",
    "targets",
    multiple=True,
    metavar="MODULE:NAME|FILE.py[:NAME]",
    help="Python tools, whose code runs; may be given several times.",
)

library_option = click.option(
    "--library",
    "library_place",
    metavar="FILE|URL",
    help="Take definitions from an artifact or from another store, which is only read, instead of "
    "the library of --store.",
)

answers_option = click.option(
    "--answers",
    metavar="URL",
    default=f"sqlite:///{FOLDER}/{EVALUATIONS}",
    show_default=True,
    help="Where the answers of evaluations are kept; known ones are not asked again.",
)


def is_typed(parameter: str) -> bool:
    """Whether a parameter of the command that runs was typed, and not taken from a default."""
    context = click.get_current_context(silent=True)
    source = None if context is None else context.get_parameter_source(parameter)
    return source is ParameterSource.COMMANDLINE


def typed(option: str, parameter: str) -> str:
    """An option as it was typed, for the commands that an output names; else nothing.

    Args:
        option: Its name, without dashes.
        parameter: The name of the command's parameter.
    """
    if not is_typed(parameter):
        return ""
    return f" --{option} {shlex.quote(str(click.get_current_context().params[parameter]))}"


_pin = click.option(
    "--pin",
    type=click.IntRange(min=0),
    metavar="VERSION",
    help="Use this version of the library, whatever is promoted.",
)
_frozen = click.option(
    "--frozen",
    is_flag=True,
    help="Refuse to start where the code of your tools and the library differ.",
)


def binding_options(command: Decorated) -> Decorated:
    """Give a command ``--pin`` and ``--frozen``."""
    return _pin(_frozen(command))


_model_name = click.option(
    "--model",
    metavar="NAME",
    envvar="AGENTKIT_MODEL",
    show_envvar=True,
    default=DEFAULT_MODEL,
    show_default=True,
    help=MODEL_HELP,
)
_adapter = click.option(
    "--adapter",
    metavar="FILE",
    help="A LoRA adapter (GGUF) for a local model, such as training exports.",
)


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
