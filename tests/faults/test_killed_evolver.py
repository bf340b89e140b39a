"""``agentkit evolve`` that is killed at each of its commits, and two that run at the same time."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from itertools import count

import pytest
from click.testing import CliRunner

from agentkit import open_store
from agentkit.cli.main import main
from agentkit.errors import StoreError
from agentkit.evolution import ToolManager
from agentkit.evolution.round import evolving

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no SIGKILL"),
]

PLUGIN = '''
import os
import signal

from agentkit import open_store
from agentkit.messages import ToolCall
from agentkit.testing import FunctionModel

def open_clerk(name):
    """A model that says what the schema allows, and without a list what the customer said."""
    return FunctionModel(answer, name="clerk")

def answer(request):
    last = request.messages[-1]
    if last.role == "tool":
        return last.text
    allowed = request.tools[0].parameters_schema["properties"]["outcome"].get("enum")
    words = last.text.rstrip(".").split()
    outcome = dict(solved="resolved").get(words[-1], words[-1]) if allowed else f"it is {words[-1]}"
    ticket = next(int(word.strip(",:")) for word in words if word.strip(",:").isdigit())
    return [ToolCall(call_id="1", name="close_ticket", arguments=dict(ticket=ticket, outcome=outcome))]

class Deadly:
    """A store that kills its process after its n-th commit."""

    def __init__(self, store):
        self._store, self._commits = store, 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    def commit(self, change, *, expected_version):
        version = self._store.commit(change, expected_version=expected_version)
        self._commits += 1
        if self._commits == int(os.environ["AGENTKIT_TEST_DEATH"]):
            os.kill(os.getpid(), signal.SIGKILL)
        return version

def open_deadly(url):
    return Deadly(open_store(".agentkit/library.db"))
'''
EVOLVE = [sys.executable, "-c", "from agentkit.cli.main import main; main()", "evolve"]
OLD, NEW = "outcome must be one of", "Ticket 7001 is closed: resolved."


@pytest.fixture
def project(tmp_path, monkeypatch, plug_in):
    """A project whose evaluation has failed, and the plugins of model and store."""
    entries = "[agentkit.models]\nclerk = agentkit_deadly:open_clerk\n"
    entries += "[agentkit.stores]\ndeadly = agentkit_deadly:open_deadly\n"
    plug_in("agentkit_deadly", PLUGIN, entries)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    for name in ("AGENTKIT_STORE", "AGENTKIT_MODEL"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "first"
    monkeypatch.chdir(tmp_path)
    typed("init", "first", "--model", "clerk:a")
    monkeypatch.chdir(folder)
    typed("eval")
    return folder


def typed(*words):
    """What a command prints, which must succeed."""
    done = CliRunner().invoke(main, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def killed_evolve(folder, at):
    """Whether a process that evolves the project was killed after so many commits."""
    ran = subprocess.run(
        [*EVOLVE, "--store", "deadly:library"],
        cwd=folder,
        env={**os.environ, "AGENTKIT_TEST_DEATH": str(at)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode in (0, -signal.SIGKILL), ran.stderr
    return ran.returncode != 0


def check_sound():
    """History and definitions agree, all are served the one of the two that the ledger names."""
    typed("check")
    typed("log", "--verify")
    with closing(open_store(".agentkit/library.db")) as store:
        manager = ToolManager(store)
        active = [one for one in manager.ledger.proposals.values() if one.state == "active"]
        is_new = bool(manager.library["close_ticket"].definition.specification.rules)
    assert len(active) == is_new
    assert (NEW if is_new else OLD) in typed("run", "Close ticket 7001, it is solved.")
    return is_new


def test_a_killed_round_leaves_the_old_or_the_new_and_the_next_goes_on(
    project, tmp_path, monkeypatch
):
    """Whichever commit it dies at, nothing is half promoted, and the next round ends its work."""
    seen = set()
    for at in count(1):
        folder = tmp_path / f"killed-{at}"
        shutil.copytree(project, folder)
        monkeypatch.chdir(folder)
        if not killed_evolve(folder, at):
            break
        seen.add(check_sound())
        typed("evolve")
        assert check_sound()
        with closing(open_store(".agentkit/library.db")) as store:
            assert len(ToolManager(store).ledger.proposals) == 1
    assert at > 2
    assert seen == {False, True}


def test_two_rounds_at_the_same_time(project):
    """The second names the process that evolves, and leaves the store as it was."""
    holder = "import sys, time; from agentkit.evolution.round import evolving\n"
    holder += (
        "with evolving('sqlite:///.agentkit/library.db'): print('held', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", holder], cwd=project, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "held\n"
        before = (project / ".agentkit" / "library.db").read_bytes()
        for words in (["evolve"], ["evolve", "--watch"]):
            second = CliRunner().invoke(main, words, catch_exceptions=False)
            [line] = second.stderr.splitlines()
            assert (second.exit_code, f"process {process.pid} on" in line) == (1, True)
        assert (project / ".agentkit" / "library.db").read_bytes() == before
    finally:
        process.kill()
        process.communicate()
    assert "in use" in typed("evolve")


def test_a_watch_beside_a_server_waits_for_its_turn(project):
    """It names the holder once, and goes on when that one has ended."""
    words = [*EVOLVE, "--watch", "0.1", "--while-process", str(os.getpid())]
    with evolving("sqlite:///.agentkit/library.db"):
        process = subprocess.Popen(words, cwd=project, stderr=subprocess.PIPE, text=True)
        waits = process.stderr.readline()
    try:
        assert f"process {os.getpid()} on" in waits
        assert "until then this server does not evolve" in waits
        assert "watching" in process.stderr.readline()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("url", ["dir:{}/library", "sqlite:///{}/library.db"])
def test_one_store_has_one_lock_however_it_is_named(tmp_path, url):
    """A link to the store's folder leads to the same lock."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    real, link = (evolving(url.format(tmp_path / name)) for name in ("real", "link"))
    with real, pytest.raises(StoreError, match=f"process {os.getpid()} on"), link:
        pass


@pytest.mark.parametrize("put", [os.mkfifo, os.mkdir, lambda at: os.link(at.with_name("own"), at)])
def test_a_lock_that_leads_elsewhere_is_refused(tmp_path, put):
    """What is no plain file of ours in the lock's place is refused in words, and left as it was."""
    (tmp_path / "own").write_text("mine")
    put(tmp_path / "library.db.evolving")
    with pytest.raises(StoreError, match=r"library\.db\.evolving.* cannot be used"):
        evolving(f"sqlite:///{tmp_path}/library.db").__enter__()
    assert (tmp_path / "own").read_text() == "mine"
