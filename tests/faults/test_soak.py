"""A bad day of ``agentkit serve``, cut short; ``tests/faults/soak.py`` is the whole of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).with_name("soak.py")
STORES = ("sqlite", "postgres")
MODELS = ("openai", "openai-compatible")
CASES = [(store, model) for store in STORES for model in MODELS]
if not os.environ.get("AGENTKIT_FAULT_RUNS"):
    CASES = CASES[:1]  # each takes half a minute


@pytest.mark.faults
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("store", "model"), CASES)
def test_nothing_acknowledged_is_lost_and_no_effect_is_hidden(request, store, model):
    """Killed, locked, on a full disk and with a failing model, a server keeps what it answered."""
    if store == "postgres":
        request.getfixturevalue("postgres_server")  # which skips where there is none
    words = ("--seconds", "20", "--users", "8", "--slack", "8", "--store", store, "--model", model)
    done = subprocess.run(
        [sys.executable, str(SOAK), *words], capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    missed = [figure for figure in found["figures"] if not figure["holds"]]
    assert missed == [], json.dumps(found, indent=1)
