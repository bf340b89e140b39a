"""A bad day of ``agentkit serve``: users, kills, a stop, a full disk, a locked store, a failing model.

The server is the real command in a process of its own. Its users, its model and whoever watches it
are processes too. Its tool writes each effect to a file outside of the store, so that effects,
answers and episodes can be laid side by side afterwards.

    python tests/faults/soak.py --seconds 360 --users 50 --store sqlite --model openai
    python tests/faults/soak.py --seconds 20 --users 8

Run it with the environment of `make install`; as root it mounts a small disk and fills it,
otherwise the files of the server may not grow for a while. It prints what came of it as JSON, and
ends with 1 when a figure is missed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import resource
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

sys.path.append(str(Path(__file__).parents[1]))  # for tests/support

from soak_load import FAILING, KEY, WELL, answer_as_a_model, asked, use, watch
from soak_report import Life, Phase, Records, report
from support.local_server import free_port

ROOT = Path(__file__).resolve().parents[2]
MAIN = "from agentkit.cli.main import main; main()"
DISK_MEGABYTES = {"sqlite": 192, "postgres": 384}
START_SECONDS = 60.0
_OF_BROKEN_TOOL = re.compile(rb"call \S+ of fail raised|Traceback|  |RuntimeError: the tool is")
REST_SECONDS = 2.0

TOOLS = '''
import asyncio, os, time
from agentkit import tool

def note(ticket):
    """One write of one line; a process that is killed afterwards has made it."""
    file = os.open(os.environ["SOAK_EFFECTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{ticket} {time.time()}\\n".encode())
    os.close(file)

@tool(effects=["writes"])
async def book(ticket: str, seconds: float) -> str:
    """Book a ticket. Takes so many seconds after the ticket is booked."""
    await asyncio.to_thread(note, ticket)
    await asyncio.sleep(seconds)
    return f"booked {ticket}"

@tool
def fail() -> str:
    """Fail."""
    raise RuntimeError("the tool is broken")
'''


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What happens, from when to when, as parts of the whole time."""

    name: str
    begin: float
    end: float | None = None


FAULTS = (
    Fault(name="kill", begin=0.06),
    Fault(name="kill", begin=0.14),
    Fault(name="locked store", begin=0.20, end=0.26),
    Fault(name="stop", begin=0.215),
    Fault(name="kill", begin=0.36),
    Fault(name="failing model", begin=0.42, end=0.50),
    Fault(name="full disk", begin=0.58, end=0.68),
    Fault(name="locked store", begin=0.76, end=0.81),
)
"""SQLite waits 5 s for a lock, PostgreSQL 10 s: in six minutes both are locked for longer."""

SHORT = (
    Fault(name="kill", begin=0.1),
    Fault(name="locked store", begin=0.2, end=0.55),
    Fault(name="failing model", begin=0.65, end=0.75),
    Fault(name="full disk", begin=0.8, end=0.95),
)
SHORT_SECONDS = 60.0
"""Up to here only one fault of each kind fits in."""


def main() -> int:
    """Run the soak, print what came of it as JSON; 1 when a figure is missed."""
    options = parsed()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="agentkit-soak-")))
        if options.keep:
            folder = Path(options.keep).absolute()
            folder.mkdir(parents=True)
        folder.chmod(0o755)  # a server of another user passes through it
        store = stack.enter_context(STORES[options.store](folder, options.seconds))
        records = endure(options, folder, store, stack)
        found = report(records)
        (folder / "report.json").write_text(json.dumps(found.to_json(), indent=1))
    print(json.dumps(found.to_json(), indent=1))
    return 0 if found.holds else 1


def parsed() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=360.0)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--think", type=float, default=0.3, help="mean pause of a user, in seconds")
    parser.add_argument("--store", choices=sorted(STORES), default="sqlite")
    parser.add_argument("--model", choices=["openai", "openai-compatible"], default="openai")
    parser.add_argument("--slack", type=float, default=1.0, help="allow this multiple of all times")
    parser.add_argument("--serve", action="append", default=[], help="one more word for the server")
    parser.add_argument("--keep", help="a new folder for everything that was written")
    return parser.parse_args()


@dataclass(kw_only=True)
class StoreUnderTest:
    """A store that can be locked, and whose disk can be filled."""

    url: str
    lock: Callable[[], Callable[[], None]]
    disk: Disk
    revive: Callable[[], None] = lambda: None


@dataclass(kw_only=True)
class Disk:
    """A small file system where one can be mounted, or else nothing but this machine's disk."""

    folder: Path
    is_small: bool

    def fill(self, server: int) -> None:
        """Leave no room; without a small disk, SQLite's log cannot grow, and PostgreSQL can."""
        if self.is_small:
            with (self.folder / "ballast").open("wb") as file:
                step = 1 << 24
                while step >= resource.getpagesize():
                    try:
                        os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, step)
                    except OSError:  # no room for so much
                        step //= 2
        for log in self.folder.glob("*-wal") if not self.is_small else ():
            most = (log.stat().st_size, resource.RLIM_INFINITY)
            resource.prlimit(server, resource.RLIMIT_FSIZE, most)

    def clear(self, server: int) -> None:
        """Give the room back."""
        if self.is_small:
            (self.folder / "ballast").unlink()
        else:
            everything = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            resource.prlimit(server, resource.RLIMIT_FSIZE, everything)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Disk]:
    """A disk in memory; the plain folder where none can be mounted."""
    folder.mkdir()
    folder.chmod(0o755)
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    mounted = not subprocess.run(mounting, capture_output=True, check=False).returncode
    try:
        yield Disk(folder=folder, is_small=mounted)
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


@contextmanager
def sqlite_store(folder: Path, seconds: float) -> Iterator[StoreUnderTest]:
    """A file; another process holds it in a transaction of its own when it is locked."""
    with small_disk(folder / "disk", DISK_MEGABYTES["sqlite"]) as disk:
        path = disk.folder / "store.db"

        def lock() -> Callable[[], None]:
            holder = sqlite3.connect(
                path, timeout=60, isolation_level=None, check_same_thread=False
            )
            holder.execute("BEGIN EXCLUSIVE")
            return holder.close

        yield StoreUnderTest(url=f"sqlite:///{path}", lock=lock, disk=disk)


@contextmanager
def postgres_store(folder: Path, seconds: float) -> Iterator[StoreUnderTest]:
    """A server of our own with its data on the small disk."""
    import psycopg
    from support.postgres_server import PostgresServer

    with ExitStack() as stack:
        disk = stack.enter_context(small_disk(folder / "disk", DISK_MEGABYTES["postgres"]))
        before, tempfile.tempdir = tempfile.tempdir, str(disk.folder)
        made = PostgresServer(options=("min_wal_size=32MB", "max_wal_size=48MB"))
        tempfile.tempdir = before
        server = stack.enter_context(made)

        def lock() -> Callable[[], None]:
            holder = psycopg.connect(server.url)
            holder.execute("LOCK TABLE episodes, episode_tools IN ACCESS EXCLUSIVE MODE")
            return holder.close

        def revive() -> None:
            if not server.is_running:
                server.start()

        url = f"{server.url}?timeout={lock_patience(seconds)}"
        yield StoreUnderTest(url=url, lock=lock, disk=disk, revive=revive)


STORES = {"sqlite": sqlite_store, "postgres": postgres_store}


@dataclass(kw_only=True)
class Served:
    """The server, which is started again whenever it ended, as a service manager does."""

    command: list[str]
    environment: dict[str, str]
    folder: Path
    pid: object
    lives: list[Life] = field(default_factory=list)
    process: subprocess.Popen | None = None

    @property
    def logged(self) -> int:
        """How many lines all its processes wrote, without the traces of the tool that is broken."""
        lines = (line for life in self.lives for line in life.log.read_bytes().splitlines())
        return sum(not _OF_BROKEN_TOOL.match(line) for line in lines)

    def start(self) -> None:
        """Start it until it listens."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            log = self.folder / f"server-{len(self.lives)}.log"
            life = Life(log=log, began=time.time())
            self.lives.append(life)
            with log.open("wb") as file:
                self.process = subprocess.Popen(
                    self.command, stderr=file, env=self.environment, cwd=self.folder
                )
            self.pid.value = self.process.pid
            while self.process.poll() is None and b"Ctrl-C" not in log.read_bytes():
                time.sleep(0.02)
            if self.process.poll() is None:
                life.ready = time.time()
                return
            life.ended, life.how = time.time(), "did not start"
            if time.monotonic() > deadline:
                raise SystemExit(f"the server does not start:\n{log.read_text()[-4000:]}")
            time.sleep(0.5)

    def kill(self) -> None:
        """End whatever runs."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def end(self, how: str) -> None:
        """Kill it, or let it stop."""
        life = self.lives[-1]
        life.told = time.time()
        self.process.kill() if how == "kill" else self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(60)
        if self.process.poll() is None:
            how = "did not stop within 60 s"
            self.process.kill()
            self.process.wait()
        life.ended, life.how = time.time(), how


def endure(
    options: argparse.Namespace, folder: Path, store: StoreUnderTest, stack: ExitStack
) -> Records:
    """The whole day."""
    spawning = multiprocessing.get_context("spawn")
    health, stop, stop_watching, pid = (spawning.Value("i", 0) for _ in range(4))

    def started(function, *words) -> multiprocessing.Process:
        process = spawning.Process(target=function, args=words, daemon=True)
        process.start()
        stack.callback(process.kill)
        return process

    def told_by(function, *words):
        here, there = spawning.Pipe()
        started(function, there, *words)
        return here.recv(), here

    base_url, _model = told_by(answer_as_a_model, health)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    (folder / "tools.py").write_text(TOOLS)
    served = Served(
        command=serve_command(options, store.url, port),
        environment=environment(folder, base_url),
        folder=folder,
        pid=pid,
    )
    served.start()
    stack.callback(served.kill)
    watching = started(watch, url, pid, stop_watching, folder / "watched.jsonl")
    using = started(use, url, options.users, options.think, stop, folder / "replies.jsonl")
    while not (folder / "replies.jsonl").exists() or not (folder / "replies.jsonl").stat().st_size:
        time.sleep(0.05)  # the users are on their way
    phases = suffer(options.seconds, served, store, health)
    stop.value = 1
    using.join(120)
    time.sleep(REST_SECONDS)  # whose clients left may still be at work
    left_open = psutil.Process(served.process.pid).net_connections("tcp")
    left_open = sum(one.laddr.port == port and one.status == "ESTABLISHED" for one in left_open)
    _, at_rest = asked(url, "/metrics")
    stop_watching.value = 1
    watching.join(60)
    served.end("stop")
    if using.exitcode or watching.exitcode:
        raise SystemExit("the users or the watcher broke; see the trace above")
    return Records(
        title=f"{options.store}, {options.model}, {options.users} users, {options.seconds:g} s",
        folder=folder,
        store_url=store.url,
        lives=served.lives,
        phases=phases,
        at_rest=at_rest,
        left_open=left_open,
        slack=options.slack,
    )


def lock_patience(seconds: float) -> int:
    """How long PostgreSQL waits for a lock: as long as ever, or less than a short soak's lock."""
    return 10 if seconds > SHORT_SECONDS else 3


def longest_run(seconds: float) -> float:
    """How long the server lets a run take: a model that hangs is to be given up within the soak."""
    return min(15.0, seconds / 10)


def serve_command(options, store_url: str, port: int) -> list[str]:
    """The real command."""
    return [
        *(sys.executable, "-c", MAIN, "serve", "--store", store_url, "--port", str(port)),
        *("--tools", "tools.py", "--yes", "--model", f"{options.model}:gpt-soak"),
        *(
            "--keys-from",
            "SOAK_KEYS",
            "--drain",
            "5",
            "--timeout",
            str(longest_run(options.seconds)),
        ),
        *("--max-concurrent", str(4 * options.users)),
        *options.serve,
    ]


def environment(folder: Path, base_url: str) -> dict[str, str]:
    """What the server is started with."""
    paths = [str(ROOT), str(ROOT / "plugins" / "agentkit-postgres")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONUNBUFFERED": "1",
        "OPENAI_BASE_URL": base_url,
        "OPENAI_API_KEY": KEY,
        "SOAK_KEYS": f"soak={KEY}",
        "SOAK_EFFECTS": str(folder / "effects"),
    }


def suffer(seconds: float, served: Served, store: StoreUnderTest, health) -> list[Phase]:
    """Do one fault after the other; what each time was, with what the log grew by."""
    faults = SHORT if seconds <= SHORT_SECONDS else FAULTS
    steps = [(fault.begin, fault.name, True) for fault in faults]
    steps += [(fault.end, fault.name, False) for fault in faults if fault.end is not None]
    phases, began, now = [], time.time(), "all well"

    def enter(name: str) -> None:
        if phases:
            phases[-1].ended, phases[-1].logged = time.time(), served.logged - phases[-1].logged
        phases.append(Phase(name=name, began=time.time(), logged=served.logged))

    enter("all well")
    for at, name, begins in [*sorted(steps), (1.0, "the end", True)]:
        time.sleep(max(0.0, began + at * seconds - time.time()))
        enter(name if begins else "all well")
        match name, begins:
            case (("kill" | "stop"), _):
                served.end(name)
                served.start()
                enter(now)
                continue
            case "locked store", True:  # a server that starts meanwhile may need it to end
                (end,) = (fault.end for fault in faults if fault.begin == at)
                left = began + end * seconds - time.time()
                threading.Timer(max(0.0, left), store.lock()).start()
            case "failing model", _:
                health.value = FAILING if begins else WELL
            case "full disk", True:
                store.disk.fill(served.process.pid)
            case "full disk", False:
                store.disk.clear(served.process.pid)
                store.revive()
        now = name if begins else "all well"
    return phases[:-1]


if __name__ == "__main__":
    sys.exit(main())
