"""``agentkit-train``: the commands, loaded one by one when they are asked for."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping

import click

from agentkit.cli.boundary import LazyGroup


def quiet_libraries() -> None:
    """Prepare this process before torch and transformers are imported.

    Their bars are left to us; threads of OpenMP sleep while they wait, so that the local model can
    use every core after training. What the user has set in the environment stays.
    """
    for name, value in (
        ("TQDM_DISABLE", "1"),
        ("HF_HUB_DISABLE_PROGRESS_BARS", "1"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("OMP_WAIT_POLICY", "PASSIVE"),
    ):
        os.environ.setdefault(name, value)
    warnings.filterwarnings("ignore", category=FutureWarning)  # of transformers, about itself


COMMANDS: Mapping[str, tuple[str, str]] = {
    "demo": ("agentkit_training.cli.commands:demo", "Train a small model on a CPU, then ask it."),
    "sft": ("agentkit_training.cli.commands:sft", "Fine-tune on gold answers."),
    "grpo": ("agentkit_training.cli.commands:grpo", "Train with rewards; the library stays."),
    "coevolve": (
        "agentkit_training.cli.commands:coevolve",
        "Train while texts and library learn as well.",
    ),
    "recipe": ("agentkit_training.cli.commands:recipe", "Repeat a paper's table, row by row."),
    "evaluate": ("agentkit_training.cli.commands:evaluate", "Measure a model on the tasks."),
    "export": ("agentkit_training.cli.commands:export", "Hand over what a run has learned."),
    "retriever": (
        "agentkit_training.cli.commands:retriever",
        "Train word vectors on what was asked for.",
    ),
    "report": ("agentkit_training.cli.commands:report", "Draw the curves of a run as a page."),
}
"""Command name to the place of its implementation and what the help page says about it."""


@click.group(
    "agentkit-train",
    cls=LazyGroup,
    commands=COMMANDS,
    epilog="Data goes to stdout, messages go to stderr. Exit status: 0 done, 1 failed, 2 misuse, "
    "130 interrupted.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--debug", is_flag=True, help="Show the Python trace of an error.")
def main(debug: bool) -> None:  # noqa: ARG001, FBT001 - a flag, which the group reads
    """Train a policy, its tools' texts and their library together.

    'agentkit-train demo' shows all of it in ten minutes on a CPU; --dry-run says what a run would
    do before anything is loaded.
    """
    quiet_libraries()


if __name__ == "__main__":  # torchrun --nproc-per-node 8 -m agentkit_training.cli.main grpo ...
    main()
