"""How many threads a model should compute with, and how they should wait for each other.

llama.cpp splits each layer among its threads and lets them meet many times per token. By default
they spin while they wait, and one that lost its core to another program then holds up all others:
on two cores of which one was busy, two spinning threads wrote 4 to 7 tokens a second and a single
thread 19. Threads that sleep instead wrote 22 to 28 there, and no less than spinning ones on quiet
cores. So sleeping is asked for when the engine is loaded, and then every core can be used.

Two cores are the exception: on a virtual machine two sleeping threads needed 1.1 s for an answer of
35 tokens where one thread needed 0.7 s; with a core busy 0.8 to 2.6 s, and 0.7 to 0.8 s
(2026-11-23).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentkit.errors import UsageError

VARIABLE = "AGENTKIT_LOCAL_THREADS"
"""Environment variable that sets the number of threads."""

_WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
_MOST = 8  # small models gain nothing beyond


def default_threads() -> int:
    """The number of threads: ``$AGENTKIT_LOCAL_THREADS``, else as many as can help.

    That is one of two cores, every core this process may use up to four, and half of them (which is
    about the number of real cores) up to eight. One less when the threads cannot be made to sleep,
    so that a core stays free for the rest of the machine.

    Raises:
        UsageError: The variable is not a positive whole number.
    """
    wanted = os.environ.get(VARIABLE, "").strip()
    if wanted:
        return checked_threads(wanted, source=f"${VARIABLE}")
    cores = available_cores()
    if cores <= 2:
        return 1
    threads = cores if cores <= 4 else min(_MOST, max(4, cores // 2))
    return threads if can_sleep() else max(1, threads - 1)


def checked_threads(wanted: str | int, *, source: str = "threads") -> int:
    """``wanted`` as a number of threads.

    Raises:
        UsageError: It is not a positive whole number.
    """
    try:
        threads = int(wanted)
    except ValueError:
        threads = 0
    if threads < 1:
        raise UsageError(f"{source} is {wanted!r}; give a whole number of threads, 1 or more")
    return threads


def available_cores() -> int:
    """Cores that this process may use: its affinity, and the quota of its control group."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    quota = _quota(Path("/sys/fs/cgroup/cpu.max"))
    return cores if quota is None else max(1, min(cores, int(quota)))


def can_sleep() -> bool:
    """Whether threads will sleep while they wait.

    Not when another package loaded the OpenMP runtime first: it reads its settings once.
    """
    is_ours = "xllamacpp" in sys.modules  # loaded under ``sleeping_threads`` for an earlier model
    return is_ours or _is_set("PASSIVE") or not _is_loaded("libgomp.so")


@contextmanager
def sleeping_threads() -> Iterator[None]:
    """Ask the OpenMP runtime, when it is loaded inside, to let waiting threads sleep.

    What the user set stays as it is, and nothing is left behind in the environment.
    """
    if any(name in os.environ for name in _WAITING):
        yield
        return
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    try:
        yield
    finally:
        os.environ.pop("OMP_WAIT_POLICY", None)


def _is_set(policy: str) -> bool:
    return os.environ.get("OMP_WAIT_POLICY", "").upper() == policy


def _is_loaded(library: str) -> bool:
    maps = Path("/proc/self/maps")
    return maps.exists() and library in maps.read_text(encoding="utf-8", errors="replace")


def _quota(path: Path) -> float | None:
    """Cores that a control group (version 2) grants, as ``quota period`` in microseconds."""
    try:
        quota, period = path.read_text(encoding="ascii").split()
        return int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):  # no control group, or "max": no limit
        return None
