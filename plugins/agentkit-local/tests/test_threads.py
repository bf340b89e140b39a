"""How many threads are used, and who decides."""

import os

import pytest

from agentkit.errors import UsageError
from agentkit_local import default_threads
from agentkit_local.threads import VARIABLE, _quota, available_cores, sleeping_threads


def test_the_variable_decides(monkeypatch):
    """AGENTKIT_LOCAL_THREADS wins over what was found out."""
    monkeypatch.setenv(VARIABLE, "3")
    assert default_threads() == 3


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5"])
def test_a_bad_variable_is_a_mistake(monkeypatch, value):
    """A setting that can not be meant is not ignored."""
    monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(UsageError, match=VARIABLE):
        default_threads()


def test_the_default_is_within_the_cores_of_this_process(monkeypatch):
    """Never more threads than cores, never none."""
    monkeypatch.delenv(VARIABLE, raising=False)
    assert 1 <= default_threads() <= available_cores()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="affinity is a thing of Linux")
def test_two_cores_get_one_thread(monkeypatch):
    """Two threads that sleep while they wait for each other are slower than one."""
    monkeypatch.delenv(VARIABLE, raising=False)
    mine = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, sorted(mine)[:2])
        assert default_threads() == 1
    finally:
        os.sched_setaffinity(0, mine)


@pytest.mark.parametrize(
    ("text", "cores"),
    [("150000 100000\n", 1.5), ("max 100000\n", None), ("odd", None), ("1 0", None)],
)
def test_the_quota_of_a_container_is_read(tmp_path, text, cores):
    """A container that may use one and a half cores says so in cpu.max."""
    file = tmp_path / "cpu.max"
    file.write_text(text)
    assert _quota(file) == cores
    assert _quota(tmp_path / "absent") is None


def test_threads_are_asked_to_sleep_and_nothing_is_left_behind(monkeypatch):
    """The runtime's setting holds while it loads; a setting of the user's stays."""
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.delenv(name, raising=False)
    with sleeping_threads():
        assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
    assert "OMP_WAIT_POLICY" not in os.environ
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    with sleeping_threads():
        assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"
