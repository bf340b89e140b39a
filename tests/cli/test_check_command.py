"""``agentkit check``: faults of composites, as a table, as JSON, and mended pins."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from agentkit import Library, ToolDefinition, open_store
from agentkit.composites.source import compose
from agentkit.library import Author, LibraryChange
from agentkit.library.chain import read_signer
from agentkit.library.events import EventDraft, chained
from agentkit.testing import primitive_library
from agentkit.tools.definition import Description, Effects, Origin

TEXTS = (
    """@composite(examples=[{"arguments": {"net": 100, "rate": 0.5}, "result": 150}])
def gross_total(net: float, rate: float) -> float:
    "A net amount with tax."
    return add(net, mul(net, rate))
""",
    """@composite(examples=[{"arguments": {"net": 100, "rate": 0.5, "rebate": 10}, "result": 140}])
def bill(net: float, rate: float, rebate: float) -> float:
    "What a customer pays."
    return sub(gross_total(net, rate), rebate)
""",
)
CODE = "agentkit.testing.primitives:PRIMITIVES"


@pytest.fixture
def keep(store_url):
    """Puts definitions into the store in one version; ``removals`` take tools out."""

    def put(*definitions, removals=()):
        store = open_store(store_url)
        version = len(store.versions())
        change = LibraryChange(
            proposal_id=f"p{version}", upserts=tuple(definitions), removals=tuple(removals)
        )
        store.commit(change, expected_version=version)
        store.close()

    return put


@pytest.fixture
def shop(keep):
    """The tool bill over gross_total over three primitives, in the store and in memory."""
    library = Library(primitive_library()[name] for name in ("add", "mul", "sub"))
    for text in TEXTS:
        library = library.with_tools([compose(text, library.tools)])
    keep(*library.definitions)
    return library


def reworded(definition):
    """The same tool with other words, so with another digest."""
    return replace(definition, description=Description(summary="Other words."))


def faults(invoke, *arguments):
    """The codes that the command finds, as (tool, code)."""
    result = invoke("check", *arguments, "--json")
    found = json.loads(result.stdout)["faults"]
    assert result.exit_code == (1 if found else 0)
    return [(fault["place"], fault["code"]) for fault in found]


def test_a_sound_library_ends_with_zero(invoke, shop):
    """The verdict and what was read stand on stdout; the untold version is a note."""
    result = invoke("check")
    assert (result.exit_code, result.stderr) == (0, "")
    read, *_, verdict = result.stdout.splitlines()
    assert read == "checked 1 version, 5 tools, 0 events, 0 episodes, 2 composites"
    assert verdict == "nothing is wrong"


def test_changed_and_missing_children_are_found(invoke, shop, keep):
    """A line a fault with code and advice; status 1."""
    keep(reworded(shop["mul"].definition), removals=["sub"])
    assert faults(invoke) == [("gross_total", "changed_child"), ("bill", "missing_child")]
    result = invoke("check")
    assert result.exit_code == 1
    assert "'gross_total' was made for 'mul'" in result.stdout
    assert "agentkit log --tool mul" in " ".join(result.stdout.split())
    assert result.stdout.endswith("\n2 faults\n")
    assert faults(invoke, "bill") == [("bill", "missing_child")]
    drawn = invoke("tools", "graph").stdout
    assert '["sub"]:::missing' in drawn


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


def test_tools_from_outside_that_write_unasked(invoke, project):
    """A note names those that nobody is asked about; destructive and read-only ones are not told."""
    effects = {
        "wild": Effects(),
        "reads": Effects(writes=False),
        "kills": Effects(destructive=True),
    }
    for name, declared in effects.items():
        tool = ToolDefinition(name=name, origin=Origin(kind="openapi", reference="pets.yaml"))
        put(project, replace(tool, signature=replace(tool.signature, effects=declared)))
    one = found(invoke)["unasked"]
    assert (one["severity"], "model calls wild from outside" in one["message"]) == ("note", True)
    assert invoke("check").exit_code == 0


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
