"""A copy that is killed anywhere is ended by running it again, with the same result."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing

import pytest
from support.histories import HistoryStep, all_told, write_history

from agentkit import open_store
from agentkit.library.checking import check_store
from agentkit.library.copying import compare_stores

KILLS = int(os.environ.get("AGENTKIT_FAULT_RUNS", "3"))
LONGEST_PAUSE = 0.15
"""Seconds from the first thing that is copied to the kill; a whole copy takes about a second."""

COPY = "import sys; from agentkit.cli.main import main; main(sys.argv[1:])"

STEPS = [
    HistoryStep(
        wishes={f"t{number % 9}": (f"text {number}", "x" * 500), f"u{number % 5}": None},
        events=number % 3,
        episodes=number % 4,
        reason="why " * 50,
    )
    for number in range(120)
]


@pytest.fixture
def source(tmp_path):
    """The URL of a store with a history."""
    url = f"sqlite:///{tmp_path / 'source.db'}"
    with closing(open_store(url)) as store:
        write_history(store, STEPS)
    return url


def start(source, target):
    """Begin to copy, in a process of its own."""
    command = [sys.executable, "-c", COPY, "store", "copy", source, target, "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def held(folder):
    """How many bytes the target takes, whoever writes to it."""
    total = 0
    for file in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # a temporary one
            total += file.stat().st_size
    return total


def kill_in_the_middle(process, folder, pause):
    """Kill a copy a moment after it wrote something; whether it was still at work."""
    before = held(folder)
    while process.poll() is None and held(folder) == before:
        time.sleep(0.002)
    time.sleep(pause)
    process.kill()
    process.communicate()
    return process.returncode == -signal.SIGKILL


@pytest.mark.long
@pytest.mark.faults
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
@pytest.mark.parametrize("kind", ["sqlite:///{}/copy.db", "dir:{}/copy"])
def test_a_killed_copy_is_ended_by_the_next(source, tmp_path, kind):
    """After several kills in the middle, one more run gives what an undisturbed copy gives."""
    folder, draw, killed = tmp_path / "target", random.Random(7), 0
    folder.mkdir()
    target = kind.format(folder)
    while killed < KILLS:
        killed += kill_in_the_middle(start(source, target), folder, draw.random() * LONGEST_PAUSE)
        with closing(open_store(source)) as ours, closing(open_store(target)) as theirs:
            found = compare_stores(ours, theirs)
        assert all(one.ended == "second" for one in found.differences)  # a beginning of it
        if found.is_equal and killed < KILLS:  # the rest of the kills need something to do
            shutil.rmtree(folder)
            folder.mkdir()
    process = start(source, target)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert json.loads(output)["compared"]["is_equal"]
    with closing(open_store(source)) as ours, closing(open_store(target)) as theirs:
        assert all_told(theirs) == all_told(ours)
        assert check_store(theirs).is_sound
