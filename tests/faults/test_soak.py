"""A bad day of ``agentkit serve``, cut short; ``tests/faults/soak.py`` is the whole of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).with_name("soak.py")


@pytest.mark.faults
@pytest.mark.timeout(180)
def test_nothing_acknowledged_is_lost_and_no_effect_is_hidden():
    """Killed, locked, on a full disk and with a failing model, a server keeps what it answered."""
    words = ("--seconds", "20", "--users", "8", "--slack", "8")
    done = subprocess.run(
        [sys.executable, str(SOAK), *words], capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    missed = [figure for figure in found["figures"] if not figure["holds"]]
    assert missed == [], json.dumps(found, indent=1)
