"""Keeping other libraries' bars, warnings and spinning threads out of what a command shows."""

from __future__ import annotations

import os
import warnings


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
