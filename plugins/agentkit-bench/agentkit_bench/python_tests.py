"""Python code in the final answer that passes tests, run in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import secrets
import signal
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

from agentkit.episodes import Episode, Evidence, Verdict, Verifier
from agentkit.evaluation.expectations import STRICT
from agentkit.evaluation.verifiers.verdicts import (
    answer_text,
    answer_turn,
    clipped,
    faulty,
    judged,
    without_answer,
)
from agentkit.tools.definition import ToolDefinition


@dataclass(frozen=True, kw_only=True, slots=True)
class PythonTests:
    """Python code in the final answer that passes tests (HumanEval).

    Attributes:
        prompt: Code that the answer may continue: imports, signature, docstring.
        tests: Code that defines ``check(candidate)``.
        entry_point: Name of the function that is tested.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    prompt: str = ""
    tests: str
    entry_point: str

    @property
    def gold_tools(self) -> tuple[str, ...]:
        """None: the answer is code."""
        return ()

    def verifier(self, definitions: Sequence[ToolDefinition]) -> Verifier:
        """What judges an episode."""
        return PythonTestsVerifier(self)

    def renamed(self, names: Mapping[str, str]) -> PythonTests:
        """The same: it names no tools."""
        return self

    def to_json(self) -> tuple[str, Any]:
        """How it is written."""
        return "tests", asdict(self)


_FENCE = re.compile(
    r"^[ \t]*(`{3,}|~{3,})[^\n`]*\n(.*?)(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_M = re.MULTILINE
_CODE_STARTS = re.compile(r"^[ \t]*(?:import|from|def|async[ \t]+def|class|@)[ \t]*\S", _M)
_FUTURE = re.compile(r"^from __future__ import [^\n]*$", _M)
_STOPS = re.compile(r"\n(?=class\b|def\b|#|if\b|print\b)")


def code_readings(answer: str, prompt: str, entry_point: str) -> tuple[str, ...]:
    r"""Programs that an answer may mean, the likeliest first; the first that is Python counts.

    Chat models write a block between fences; of several, the last that defines the function
    counts, else the last. Models that complete text go on where the prompt ends. Code that
    defines the function is put behind the prompt, whose imports and helpers it may use, and
    defines it anew; other code is the function's body. As HumanEval's authors do (Chen et al.,
    2021, section 3.1), a body is also read up to the first ``\nclass``, ``\ndef``, ``\n#``,
    ``\nif`` or ``\nprint``, but only when it is no Python as a whole.

    Args:
        answer: The final answer.
        prompt: The code that it may continue.
        entry_point: The function that it is to define.
    """
    definition = _definition(entry_point)
    blocks = [block[2] for block in _FENCE.finditer(answer)]
    code = ([block for block in blocks if definition.search(block)] or blocks or [answer])[-1]
    readings = list(_definitions(code)) if definition.search(code) else []
    readings += _bodies(code)
    return tuple(_joined(prompt, text) for text in dict.fromkeys(readings))


def _definition(name: str) -> re.Pattern[str]:
    """What code looks like that defines a name, as a function, a class or a value."""
    name = re.escape(name)
    return re.compile(
        rf"^[ \t]*(?:(?:async[ \t]+)?def|class)[ \t]+{name}\b|^{name}[ \t]*[:=][^=]", _M
    )


def _definitions(code: str) -> Iterator[str]:
    """Code that defines the function, as it is and without words before it."""
    yield textwrap.dedent(code)
    if start := _CODE_STARTS.search(code):
        yield textwrap.dedent(code[start.start() :])


def _bodies(code: str) -> Iterator[str]:
    """A function's body in the forms in which it may have lost its indentation."""
    for text in (code, _STOPS.split(code, maxsplit=1)[0]):
        body = text.strip("\n")
        if body[:1].isspace():
            yield text
        yield "    " + body.lstrip()
        yield textwrap.indent(textwrap.dedent(body), "    ")


def _joined(prompt: str, code: str) -> str:
    """The prompt and the code; imports from ``__future__`` have to come first."""
    return "\n".join((*_FUTURE.findall(code), prompt.rstrip(" \t"), _FUTURE.sub("", code)))


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeLimits:
    """Bounds of one run.

    Attributes:
        cpu_seconds: Processor time of the process. This is the bound that a loop without end
            meets; unlike wall time it is the same on a busy machine.
        seconds: Wall time, for code that waits.
        memory_bytes: Address space of the process.
        file_bytes: Largest file that may be written in its folder; 0 for no writing at all.
    """

    cpu_seconds: int = 5
    seconds: float = 20.0
    memory_bytes: int = 1 << 30
    file_bytes: int = 0


_CHILD = Path(__file__).with_name("sandbox_child.py")
_MOST_BYTES = 1 << 16
_LAST_WORDS_SECONDS = 2.0
_SECRET_BYTES = 16

CodeOutcome = Literal[
    "passed",  # the tests ran to their end
    "failed",  # the code or a test raised
    "broken_tests",  # the tests are not Python, found before the code ran
    "ended",  # the process ended itself before the tests did
    "out_of_time",  # processor or wall time was spent
    "killed",  # a signal ended it
]


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeRun:
    """What came of code and its tests.

    Attributes:
        outcome: How it ended.
        message: That in words.
        error: Type name of the exception, for ``failed``.
        confined: What the kernel took away from the process: ``capabilities``, ``files``,
            ``processes and network``. What is not listed was not contained, see ``run_tests``.
    """

    outcome: CodeOutcome
    message: str = ""
    error: str = ""
    confined: tuple[str, ...] = ()


async def run_tests(
    readings: Sequence[str], tests: str, entry_point: str, *, limits: CodeLimits
) -> CodeRun:
    """Run code in a process of its own, and then its tests in the names that it made.

    The process is ``python -I`` in an empty folder, with no environment but that folder as its
    home, no input, its output thrown away, and the limits set. When the wall time is over, it and
    all of its process group are killed. It reports through a pipe, and each report carries a
    random secret, so that neither a printed word nor an exit status counts as success: the tests
    passed when ``check`` returned.

    On Linux, where the kernel allows it (``CodeRun.confined``), the process can also not open
    sockets, start processes or programs, send signals to others, write files or use the rights
    of root. Elsewhere and where the kernel refuses, code can do what the user who runs this can
    do, and a process that leaves the group survives.

    Never contained: code can read every file that the user can read, and code that is written
    against this very program, rather than for its task, can look through the frames of its own
    process for the secret, or return objects that claim to equal everything. To run code from
    an adversary, put the evaluation into a virtual machine.

    Args:
        readings: What the code may be, best guess first; the first that is Python is run.
        tests: Code that defines ``check(candidate)``.
        entry_point: Name of what is handed to ``check``.
        limits: What the process may use.

    Raises:
        OSError: The process could not be started.
        RuntimeError: It came to its end before it had got to the code.
    """
    secret = secrets.token_hex(_SECRET_BYTES)
    job = {
        "secret": secret,
        "readings": list(readings),
        "tests": tests,
        "entry_point": entry_point,
        "limits": asdict(limits),
    }
    with tempfile.TemporaryDirectory(prefix="agentkit-code-") as folder:
        process = await _run(json.dumps(job).encode(), Path(folder), limits.seconds)
    return _judged(process, secret, limits)


@dataclass(kw_only=True, slots=True)
class _Process(asyncio.SubprocessProtocol):
    """What is heard of the process."""

    heard: bytearray = field(default_factory=bytearray)
    exited: asyncio.Event = field(default_factory=asyncio.Event)
    silent: asyncio.Event = field(default_factory=asyncio.Event)
    status: int | None = None
    is_late: bool = False

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep what the process reports, up to a bound."""
        self.heard += data[: _MOST_BYTES - len(self.heard)]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Note that there will be no more reports."""
        if fd == 1:
            self.silent.set()

    def process_exited(self) -> None:
        """Note the end of the process."""
        self.exited.set()


async def _run(job: bytes, folder: Path, seconds: float) -> _Process:
    home = str(folder)
    transport, process = await asyncio.get_running_loop().subprocess_exec(
        _Process,
        *(sys.executable, "-I", "-B", "-X", "utf8", str(_CHILD)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=home,
        env={"HOME": home, "TMPDIR": home, "LANG": "C.UTF-8"},
        start_new_session=True,
    )
    group = transport.get_pid()
    try:
        _send(transport, job)
        async with asyncio.timeout(seconds):
            await process.exited.wait()
    except TimeoutError:
        process.is_late = True
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        await asyncio.shield(_ended(transport, process))
    return process


def _send(transport: asyncio.SubprocessTransport, job: bytes) -> None:
    pipe = cast("asyncio.WriteTransport", transport.get_pipe_transport(0))
    pipe.write(job)
    pipe.close()


async def _ended(transport: asyncio.SubprocessTransport, process: _Process) -> None:
    """Wait for the end of the process and for its last report, then close the pipes.

    A process that it started and that got out of the group may hold the pipe open for ever, so
    the second wait is short.
    """
    await process.exited.wait()
    process.status = transport.get_returncode()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LAST_WORDS_SECONDS):
            await process.silent.wait()
    transport.close()


def _judged(process: _Process, secret: str, limits: CodeLimits) -> CodeRun:
    reports = list(_reports(bytes(process.heard), secret))
    if not reports and not process.is_late:
        raise RuntimeError(f"the process for the code ended with status {process.status}")
    confined = next((one["confined"] for one in reports if one["outcome"] == "confined"), ())
    last = reports[-1] if reports else {"outcome": "started"}
    if last["outcome"] in {"started", "confined"}:
        outcome, message = _ending(process, limits)
        return CodeRun(outcome=outcome, message=message, confined=tuple(confined))
    return CodeRun(
        outcome=cast("CodeOutcome", last["outcome"]),
        message=_sentence(last),
        error=last.get("error", ""),
        confined=tuple(confined),
    )


def _reports(heard: bytes, secret: str) -> Iterator[dict[str, Any]]:
    for line in heard.splitlines():
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue  # foreign code wrote to the pipe
        if isinstance(record, dict) and record.get("secret") == secret:
            yield record


def _sentence(report: dict[str, Any]) -> str:
    if report["outcome"] != "failed":
        return str(report.get("message", ""))
    parts = [report["error"], report.get("message", "")]
    text = ": ".join(part for part in parts if part)
    where, line = report.get("where", ""), report.get("line", "")
    if line:
        where += f": {line}" if where.startswith("tests") else f", called by: {line}"
    return f"{text} ({where})" if where else text


def _ending(process: _Process, limits: CodeLimits) -> tuple[CodeOutcome, str]:
    if process.is_late:
        return "out_of_time", f"not done after {limits.seconds:g} seconds"
    status = process.status or 0
    if status in {-signal.SIGXCPU, -signal.SIGKILL}:
        spent = f"more than {limits.cpu_seconds} seconds of processor time were used"
        return "out_of_time", spent
    if status < 0:
        return "killed", f"signal {-status} ended it"
    return "ended", f"the code ended the process with status {status} before the tests were done"


class PythonTestsVerifier:
    """Passes when the code in the final answer passes the tests.

    The code is found by ``code_readings`` and run by ``run_tests``: in a process of its own, under
    limits. Read there what is contained and what is not.

    Args:
        expected: The prompt that the code may continue, the tests, and what they test.
        limits: What the process may use.
    """

    name = "python_tests"

    def __init__(self, expected: PythonTests, *, limits: CodeLimits | None = None) -> None:
        self._expected = expected
        self._limits = limits or CodeLimits()

    async def verify(self, episode: Episode) -> Verdict:
        """Run the code of the answer and its tests."""
        expected = self._expected
        answer = answer_text(episode)
        if answer is None:
            return without_answer(self.name, episode)
        readings = code_readings(answer, expected.prompt, expected.entry_point)
        run = await run_tests(readings, expected.tests, expected.entry_point, limits=self._limits)
        if run.outcome == "broken_tests":
            return faulty(self.name, "gold_error", f"the tests can not be run: {run.message}")
        details = {"outcome": run.outcome, "confined": list(run.confined)}
        found = () if run.outcome == "passed" else (self._failure(run, answer, episode),)
        return judged(self.name, found, details=details)

    def _failure(self, run: CodeRun, answer: str, episode: Episode) -> Evidence:
        return Evidence(
            kind="test_failed",
            message=f"{self._expected.entry_point}: {run.message}",
            turn=answer_turn(episode),
            actual=clipped(answer),
        )
