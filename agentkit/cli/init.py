"""``agentkit init``: a project to begin with."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import click

from agentkit.cli.options import DEFAULT_MODEL, MODEL_HELP, command, json_option, option
from agentkit.cli.output import print_json, say
from agentkit.cli.project import FILE
from agentkit.errors import UsageError

SAMPLE = (FILE, "tools.py", "tasks.jsonl")
"""What is written: the settings, a tool that refuses what it does not say, and tasks for it."""

_NEXT = (
    ("agentkit eval", "how often the model calls the tool right"),
    ("agentkit evolve", "learn from the refusals, keep what gains on held-out tasks"),
    ("agentkit review show last", "what was learned, and how it did"),
)


@command()
@click.argument(
    "folder", type=click.Path(file_okay=False, path_type=Path), default=Path(), required=False
)
@option("--model", metavar="NAME", default=DEFAULT_MODEL, help=MODEL_HELP)
@json_option
def init(folder: Path, model: str, *, as_json: bool) -> None:
    """Begin a project in FOLDER: agentkit.toml, a sample tool, and tasks that measure it.

    Commands that are started in the folder or below it take their options from agentkit.toml.
    Nothing that is there already is overwritten.

    Examples:
      agentkit init
      agentkit init help-desk --model openai:gpt-4o-mini
    """
    there = [name for name in SAMPLE if (folder / name).exists()]
    if there:
        raise UsageError(
            f"{folder.absolute()} has {' and '.join(there)} already, and nothing was written; "
            "name another folder: agentkit init FOLDER"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name in SAMPLE:
        text = (files("agentkit.cli") / "sample" / name).read_text(encoding="utf-8")
        if name == FILE:
            text = _with_model(text, model)
        (folder / name).write_text(text, encoding="utf-8")
    commands = [] if folder == Path() else [(f"cd {folder}", "")]
    if model == DEFAULT_MODEL:
        install = f"agentkit models install {model.partition(':')[2]}"
        commands.append((install, "the sample's model, 98 MB, once"))
    commands += _NEXT
    if as_json:
        typed = [command for command, _ in commands]
        print_json({"folder": str(folder.absolute()), "files": SAMPLE, "next": typed})
        return
    say(f"Began a project in {folder.absolute()}: {', '.join(SAMPLE)}")
    width = max(len(command) for command, _ in commands)
    say("\n".join(f"  {command:<{width}}  {words}".rstrip() for command, words in commands))


def _with_model(text: str, model: str) -> str:
    """The settings for a model; what a small one needs is left out for others."""
    if model == DEFAULT_MODEL:
        return text
    settings, _, _ = text.partition("# Options of single commands")
    head, _, rest = settings.partition("# Any model:")
    _, _, rest = rest.partition(f'model = "{DEFAULT_MODEL}"\n')
    return f"{head}model = {json.dumps(model, ensure_ascii=False)}\n{rest}".rstrip() + "\n"
