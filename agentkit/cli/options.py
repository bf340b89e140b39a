"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

DEFAULT_MODEL = "local:smollm2-135m"


def default_store_url() -> str:
    """The user's own library: ``$XDG_DATA_HOME/agentkit/library.db``, else under ~/.local/share.

    It lies in the user's data folder rather than in the working directory, so that every command
    finds the same library wherever it is started.
    """
    return f"sqlite:///{data_directory() / 'library.db'}"


def data_directory() -> Path:
    """Where agentkit keeps the user's data."""
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "agentkit"


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")

store_option = click.option(
    "--store",
    "store_url",
    metavar="URL",
    envvar="AGENTKIT_STORE",
    show_envvar=True,
    default=default_store_url,
    show_default="library.db in your data folder",
    help="Where definitions and episodes are kept, such as sqlite:///library.db.",
)

model_option = click.option(
    "--model",
    metavar="NAME",
    envvar="AGENTKIT_MODEL",
    show_envvar=True,
    default=DEFAULT_MODEL,
    show_default=True,
    help="The model: local:NAME, local:/path/to/file.gguf, openai:NAME, litellm:NAME, ...",
)
