"""``agentkit check`` as the doctor of a project's security."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from agentkit import ToolDefinition, open_store
from agentkit.library import Author, LibraryChange
from agentkit.library.events import EventDraft, chained
from agentkit.library.signing import read_signer
from agentkit.tools.definition import Effects, Origin


@pytest.fixture
def project(invoke, tmp_path, monkeypatch):
    """A project as ``agentkit init`` makes it, with its tools in the library."""
    monkeypatch.delenv("AGENTKIT_STORE")
    assert invoke("init", ".").exit_code == 0
    assert invoke("tools", "add").exit_code == 0
    return tmp_path


def found(invoke):
    """What the check found, by code."""
    told = json.loads(invoke("check", "--json").stdout)
    return {one["code"]: one for one in (*told["faults"], *told["notes"])}


def put(project, *definitions, author="program", signer=None):
    """Write definitions into the project's store, told by an event."""
    store = open_store(f"sqlite:///{project / '.agentkit' / 'library.db'}")
    version, events = store.load().version, store.events()
    draft = EventDraft(
        kind="written",
        author=Author(kind=author, name="Ada"),
        library_version=version + bool(definitions),
        facts={"operation": "import", "tools": {one.name: one.digest for one in definitions}},
    )
    change = LibraryChange(
        proposal_id=f"p{len(events)}",
        upserts=definitions,
        events=chained(events[-1], [draft], at="2026-11-21T10:00:00+00:00", signer=signer),
    )
    store.commit(change, expected_version=version)
    store.close()


def test_a_clean_project_is_one_line(invoke, project):
    """Nothing to act on is one line, and the exit status is 0."""
    ran = invoke("check")
    assert ran.exit_code == 0
    assert ran.stdout.count("\n") == 1
    assert ran.stdout.startswith("nothing is wrong: 1 version (1 tool in the newest), 1 event")


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX")
def test_a_store_that_everybody_can_read(invoke, project):
    """Open files are named with the command that closes them."""
    (project / ".agentkit").chmod(0o755)
    one = found(invoke)["readable"]
    assert (one["severity"], one["advice"]) == ("warning", f"chmod o= {one['place']}")
    assert invoke("check").exit_code == 1
    (project / ".agentkit").chmod(0o750)
    assert invoke("check").exit_code == 0


def test_keys_in_files_of_the_project(invoke, project):
    """A key is named by its line, and not repeated."""
    key = "sk-" + "a1" * 20
    with (project / "tools.py").open("a") as file:
        file.write(f"\nKEY = {key!r}\n")
    one = found(invoke)["key"]
    assert one["place"].startswith("tools.py:") or "/tools.py:" in one["place"]
    assert one["severity"] == "error"
    assert key not in invoke("check").stdout


def test_a_server_that_nobody_approved(invoke, project):
    """Tools of an MCP server that a program brought are named; those of a person are not."""
    tool = ToolDefinition(name="lookup", origin=Origin(kind="mcp", reference="https://mcp.example"))
    put(project, replace(tool, signature=replace(tool.signature, effects=Effects(writes=False))))
    one = found(invoke)["server"]
    assert (one["place"], one["severity"]) == ("https://mcp.example", "warning")
    assert "lookup" in one["message"]
    put(project, author="person")
    assert "server" in found(invoke)


def test_events_without_a_signature_among_signed_ones(invoke, project):
    """A writer that does not sign in a project that does is named by its first event."""
    put(project, signer=read_signer("0" * 32))
    assert "unsigned" not in found(invoke)
    put(project)
    one = found(invoke)["unsigned"]
    assert one["place"] == "event 3"
    assert "AGENTKIT_AUDIT_KEY" in one["advice"]


def test_a_project_that_has_no_store_yet_is_looked_at(invoke, tmp_path, monkeypatch):
    """Before the first command that writes, the files are checked, and nothing is made."""
    monkeypatch.delenv("AGENTKIT_STORE")
    assert invoke("init", ".").exit_code == 0
    ran = invoke("check")
    assert ran.exit_code == 0, ran.stderr
    assert "there is no store at sqlite:///.agentkit/library.db yet" in ran.stdout
    assert "nothing is wrong" in ran.stdout
    assert not (tmp_path / ".agentkit").exists()
    with (tmp_path / "tools.py").open("a") as file:
        file.write(f"\nKEY = 'GOCSPX-{'a1B2c' * 5}'\n")
    ran = invoke("check")
    assert ran.exit_code == 1
    assert "tools.py:" in ran.stdout
    assert "GOCSPX-" not in ran.stdout
    assert json.loads(invoke("check", "--json").stdout)["notes"]


def test_a_store_that_was_asked_for_must_be_there(invoke, tmp_path, monkeypatch):
    """A name that leads nowhere is misuse, also in a project, and so is a folder without one."""
    assert invoke("init", "p").exit_code == 0
    monkeypatch.chdir(tmp_path / "p")
    assert invoke("check", "--store", "absent.db").exit_code == 2
    assert invoke("check").exit_code == 2  # AGENTKIT_STORE
    monkeypatch.delenv("AGENTKIT_STORE")
    assert invoke("check", "some_tool").exit_code == 2
    monkeypatch.chdir(tmp_path)
    assert invoke("check").exit_code == 2


@pytest.mark.parametrize(
    "line",
    [
        'DB = "postgres://ann:hunter2@db/orders"',
        'PASSWORD = "hunter2"',
        "dict(client_secret='a1 b')",
    ],
)
def test_passwords_in_code(invoke, project, line):
    """Literals that are called passwords, and those in URLs, are named and not repeated."""
    with (project / "tools.py").open("a") as file:
        file.write(f"\n{line}\n")
    ran = invoke("check")
    assert ran.exit_code == 1
    assert "what looks like a password" in ran.stdout
    assert "hunter2" not in ran.stdout


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX")
@pytest.mark.parametrize("name", ["agentkit.toml", "tools.py"])
def test_files_that_everybody_can_change(invoke, project, name):
    """Code that others can write runs as its user: an error, with the command that ends it."""
    (project / name).chmod(0o666)
    one = found(invoke)["writable"]
    assert one["severity"] == "error"
    assert one["advice"].endswith(f"chmod o-w {one['place']}")
    (project / name).chmod(0o664)
    assert invoke("check").exit_code == 0
