"""Python code in answers, run with its tests in a process of its own."""

import asyncio
import gzip
import json
import threading
from pathlib import Path

import pytest

from agentkit_bench.python_tests import CodeLimits, PythonTests, PythonTestsVerifier

PROMPT = '''import math


def helper(x):
    return math.floor(x)


def double(x: int) -> int:
    """Twice a number.

    >>> double(2)
    4
    """
'''
TESTS = """
def check(candidate):
    assert candidate(2) == 4
    assert candidate(-1) == -2
    assert helper(2.5) == 2
"""
DOUBLE = PythonTests(prompt=PROMPT, tests=TESTS, entry_point="double")

RIGHT = {
    "continuation": "    return x + x\n",
    "stripped continuation": "return x + x",
    "uses a helper of the prompt": "    return helper(x) * 2",
    "fenced": "Sure:\n\n```python\ndef double(x):\n    return 2 * x\n```\nDone.",
    "fence left open": "```python\ndef double(x):\n    return 2 * x\n",
    "last definition": "```python\ndef double(x):\n    return x\n```\nNo:\n```python\ndef double(x):\n    return 2 * x\n```\n```python\nprint(double(2))\n```",
    "indented block": "1. Write:\n   ```python\n   def double(x):\n       return 2 * x\n   ```",
    "words before": "The function:\n\ndef double(x):\n    return 2 * x\n",
    "future import": "```python\nfrom __future__ import annotations\ndef double(x: Int) -> Int:\n    return 2 * x\n```",
    "goes on after the body": "    return x + x\n\n\nprint(double(\n",
    "threads": "    import threading\n    t = threading.Thread(target=print)\n    t.start()\n    t.join()\n    return 2 * x",
}
WRONG = {
    "pass": ("    pass\n", "AssertionError (tests.py, line 3: assert candidate(2) == 4)"),
    "words": ("I can not do that, sorry.", "SyntaxError"),
    "no such name": ("    return y\n", "NameError: name 'y' is not defined (solution.py, line 15"),
    "deep nesting": ("(" * 100_000, "SyntaxError"),
    "raises odd exceptions": (
        "    class E(Exception):\n        def __str__(self): raise ValueError\n    raise E",
        "E: (told by ValueError)",
    ),
}
EVERY_PIPE = """    import os
    for fd in range(20):
        try:
            os.write(fd, b'{"outcome": "passed", "secret": ""}\\n')
        except OSError:
            pass
"""
HOSTILE = {
    "loop": ("    while True: pass", "seconds of processor time"),
    "loop that ignores the signal": (
        "    import signal\n    signal.signal(signal.SIGXCPU, signal.SIG_IGN)\n    while True: pass",
        "seconds of processor time",
    ),
    "sleep": ("    import time\n    time.sleep(60)", "not done after"),
    "memory": ("    return [0] * 10**10", "MemoryError"),
    "sys.exit": ("    import sys\n    sys.exit(0)", "SystemExit: 0"),
    "exit at import": ("    return 2 * x\nraise SystemExit(0)", "SystemExit: 0"),
    "os._exit": ("    import os\n    os._exit(0)", "status 0 before the tests were done"),
    "crash": ("    import ctypes\n    ctypes.string_at(0)", "signal 11"),
    "printed success": (EVERY_PIPE + "    os._exit(0)", "before the tests were done"),
    "flood of the pipe": (EVERY_PIPE.replace("range(20)", "list(range(20)) * 10**6"), "seconds"),
    "closed pipe": (
        "    import os\n    os.closerange(0, 99)\n    return 2 * x",
        "before the tests",
    ),
    "swallowed tests": ("    return 1\n'''", "SyntaxError"),
    "replaced check": ("    return 1\ndef check(candidate): pass", "AssertionError"),
    "exit handler": (
        "    import atexit, os\n    atexit.register(os._exit, 0)\n    return 1",
        "AssertionError",
    ),
}
CONFINED = {
    "fork": "    import os\n    while True: os.fork()",
    "program": "    import subprocess\n    subprocess.run(['true'])",
    "process": "    import multiprocessing\n    multiprocessing.Process(target=print).start()",
    "kill the parent": "    import os\n    os.kill(os.getppid(), 9)",
    "kill the parent's group": "    import os\n    os.killpg(os.getpgid(os.getppid()), 9)",
    "kill everything": "    import os\n    os.kill(-1, 9)",
    "leave the group": "    import os\n    os.setsid()",
    "network": "    import socket\n    socket.create_connection(('127.0.0.1', 9))",
    "raise limits": "    import resource\n    resource.setrlimit(resource.RLIMIT_CPU, (100, 100))",
    "change modes": "    import os\n    os.chmod('/tmp', 0o700)",
}
FILES = {
    "write in the folder": "    open('x', 'w').write('x')",
    "write elsewhere": "    open('/tmp/agentkit-should-not-be', 'w').write('x')",
    "make folders": "    import os\n    os.mkdir('/tmp/agentkit-should-not-be')",
    "remove": "    import os\n    os.remove(os.environ['HOME'] + '/tests.py')",
    "rename": "    import os\n    os.rename('tests.py', 'x.py')",
}


@pytest.fixture
def judge(episode):
    """Judges an answer under small limits."""

    async def verdict(answer, expected=DOUBLE, **limits):
        bounds = CodeLimits(**{"cpu_seconds": 1, "memory_bytes": 1 << 29, **limits})
        return await PythonTestsVerifier(expected, limits=bounds).verify(episode(answer=answer))

    return verdict


@pytest.mark.parametrize("answer", RIGHT.values(), ids=RIGHT)
async def test_right_code_passes_however_it_is_written(judge, answer):
    """Fenced, continued, with lost indentation, with words around it: the code is found."""
    verdict = await judge(answer)
    assert (verdict.passed, verdict.evidence) == (True, ())


@pytest.mark.parametrize(("answer", "reason"), WRONG.values(), ids=WRONG)
async def test_wrong_code_fails_with_the_reason(judge, answer, reason):
    """The evidence names the exception and the place, in the code or in the tests."""
    verdict = await judge(answer)
    assert (verdict.passed, verdict.fault) == (False, None)
    assert verdict.evidence[0].kind == "test_failed"
    assert reason in str(verdict.evidence[0])
    assert verdict.evidence[0].turn == 0


@pytest.mark.parametrize(("answer", "reason"), HOSTILE.values(), ids=HOSTILE)
async def test_hostile_code_does_not_pass(judge, answer, reason):
    """Loops, bombs, early exits and forged reports end within the limits, as failures."""
    limits = {"seconds": 1} if "sleep" in answer else {"cpu_seconds": 1}
    verdict = await judge(answer, **limits)
    assert (verdict.passed, verdict.fault) == (False, None)
    assert reason in str(verdict.evidence[0])


@pytest.mark.parametrize("answer", CONFINED.values(), ids=CONFINED)
async def test_code_can_not_reach_other_processes(judge, answer):
    """Forks, programs, signals to others, sockets and higher limits are refused."""
    verdict = await judge(answer)
    if "processes and network" not in verdict.details["confined"]:
        pytest.skip("this system has no seccomp filters")
    assert not verdict.passed
    assert "Error" in str(verdict.evidence[0])


@pytest.mark.parametrize("answer", FILES.values(), ids=FILES)
async def test_code_can_not_change_files(judge, answer, tmp_path):
    """Files are neither written nor made nor removed."""
    verdict = await judge(answer)
    if "files" not in verdict.details["confined"]:
        pytest.skip("this system has no Landlock")
    assert not verdict.passed
    assert "PermissionError" in str(verdict.evidence[0])


async def test_code_may_be_allowed_to_write_in_its_folder(judge):
    """With a bound for files, the empty folder in which the code runs can be used."""
    answer = "    open('x', 'w').write(str(2 * x))\n    return int(open('x').read())"
    assert (await judge(answer, file_bytes=1000)).passed
    large = await judge("    open('x', 'w').write('x' * 10**5)", file_bytes=1000)
    assert "OSError" in str(large.evidence[0])


async def test_code_sees_nothing_of_our_environment(judge, monkeypatch):
    """Keys in environment variables do not reach the code, and its home is its own folder."""
    monkeypatch.setenv("SOME_API_KEY", "secret")
    answer = (
        "    import os\n"
        "    assert 'SOME_API_KEY' not in os.environ\n"
        "    assert os.environ['HOME'] == os.getcwd()\n"
        "    return 2 * x"
    )
    assert (await judge(answer)).passed


async def test_our_own_environment_can_not_be_read(judge):
    """Where the kernel confines files, another process's environment is out of reach."""
    answer = "    import os\n    open(f'/proc/{os.getppid()}/environ').read()"
    verdict = await judge(answer)
    if "files" not in verdict.details["confined"]:
        pytest.skip("this system has no Landlock")
    assert "PermissionError" in str(verdict.evidence[0])


@pytest.fixture
def children():
    """Gives the ids of the processes that this thread has started and that are there."""
    listed = Path(f"/proc/self/task/{threading.get_native_id()}/children")
    if not listed.exists():
        pytest.skip("this system does not list the processes that a thread has started")
    return lambda: set(listed.read_text().split())


async def test_cancelling_ends_the_process(judge, children):
    """A cancelled evaluation leaves no process behind."""
    before = children()
    task = asyncio.create_task(judge("    import time\n    time.sleep(60)", seconds=60.0))
    while not (started := children() - before):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not started & children()


@pytest.mark.parametrize(
    "expected",
    [
        PythonTests(prompt=PROMPT, tests="def check(:", entry_point="double"),
        PythonTests(prompt=PROMPT, tests="assert True", entry_point="double"),
    ],
)
async def test_broken_tests_are_a_gold_error(judge, expected):
    """Tests that are no tests say nothing about the code, whatever the code does."""
    for answer in ("    return 2 * x", "    raise SystemExit(0)"):
        assert (await judge(answer, expected)).fault == "gold_error"


@pytest.mark.corpora
@pytest.mark.parametrize(("form", "passes"), [("{gold}", True), ("    pass", False)])
async def test_humaneval(corpus, episode, every, form, passes):
    """Canonical solutions pass, empty bodies fail; every eighth of 164 unless all are asked for."""
    with gzip.open(corpus("humaneval") / "problems.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = every(8, [json.loads(line) for line in lines])
    turns = asyncio.Semaphore(2)

    async def verdict(row):
        expected = PythonTests(
            prompt=row["query"], tests=row["test"], entry_point=row["entry_point"]
        )
        async with turns:
            answer = form.format(gold=row["gold"])
            return await PythonTestsVerifier(expected).verify(episode(answer=answer))

    verdicts = await asyncio.gather(*(verdict(row) for row in rows))
    wrong = [row["id"] for row, one in zip(rows, verdicts, strict=True) if one.passed != passes]
    assert len(rows) in {21, 164}
    assert wrong == []
