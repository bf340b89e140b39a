"""``agentkit.toml``, ``agentkit init`` and ``agentkit check``."""

import json
import os
import tomllib
from dataclasses import replace

import pytest
from click.testing import CliRunner

from agentkit import ToolDefinition, open_store
from agentkit.cli.loading import load_tools
from agentkit.cli.main import main
from agentkit.cli.project import find_project
from agentkit.evaluation import load_tasks
from agentkit.library import Author, LibraryChange
from agentkit.library.chain import read_signer
from agentkit.library.events import EventDraft, chained
from agentkit.tools.definition import Effects, Origin

SHOP = '''
from agentkit import tool

@tool
def price(item: str) -> int:
    """What it costs.

    Args:
        item: The item.
    """
    return 3
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder, without the variables that go before a project."""
    for name in ("AGENTKIT_STORE", "AGENTKIT_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    """A command as it is typed."""
    return CliRunner().invoke(main, list(words), catch_exceptions=False)


def project(folder, text):
    """Write a project with one tool."""
    (folder / "shop.py").write_text(SHOP)
    (folder / "agentkit.toml").write_text(text)


def test_without_a_project_the_store_lies_in_the_working_folder(folder):
    """Nothing is written outside of the folder, and git is told to leave it alone."""
    (folder / "t.json").write_text('[{"name": "a"}]')
    assert run("tools", "import", "--yes", "t.json").exit_code == 0
    assert sorted(one.name for one in (folder / ".agentkit").iterdir() if one.suffix != "") == [
        "library.db"
    ]
    assert (folder / ".agentkit" / ".gitignore").read_text() == "*\n"
    assert not list(folder.glob("*.db"))


def test_commands_look_upward(folder, monkeypatch):
    """A command that is started below a project uses its store and its tools."""
    project(folder, 'tools = ["shop.py"]\n')
    below = folder / "notes" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert run("tools", "add").exit_code == 0
    monkeypatch.chdir(folder)
    assert "price" in run("tools", "list").stdout
    assert (folder / ".agentkit" / "library.db").exists()
    assert not (below / ".agentkit").exists()


@pytest.mark.parametrize(
    ("store", "made"),
    [
        ("kept.db", "kept.db"),
        ("sqlite:///data.db", "data.db"),
        ("dir:library", "library/tools/price.yaml"),
    ],
)
def test_a_store_is_seen_from_the_project(folder, monkeypatch, store, made):
    """Relative stores of each kind lie in the project, wherever the command is started."""
    project(folder, f'store = "{store}"\ntools = ["shop.py"]\n')
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    result = run("tools", "add")
    assert result.exit_code == 0, result.stderr
    assert (folder / made).exists()


def test_what_is_typed_goes_before_the_variables_and_these_before_the_file(folder, monkeypatch):
    """The command line wins, then the environment, then the project."""
    project(folder, 'store = "project.db"\ntools = ["shop.py"]\n')
    monkeypatch.setenv("AGENTKIT_STORE", "sqlite:///variable.db")
    assert run("tools", "add").exit_code == 0
    assert run("tools", "add", "--store", "typed.db").exit_code == 0
    assert sorted(one.name for one in folder.glob("*.db")) == ["typed.db", "variable.db"]


def test_a_table_sets_options_of_one_command(folder):
    """The options of a command stand in its table, by their names, with or without dashes."""
    project(folder, 'tools = ["shop.py"]\n[search]\nlimit = 1\n')
    (folder / "two.json").write_text('[{"name": "price_a"}, {"name": "price_b"}]')
    assert run("tools", "import", "--yes", "two.json").exit_code == 0
    assert len(json.loads(run("search", "price", "--json").stdout)["hits"]) == 1
    project(folder, 'store = "one.db"\n[search]\nstore = "two.db"\n')
    assert "there is no store at two.db" in run("search", "price").stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tool = []", "tool: there is no such key; did you mean 'tools'?"),
        ("tools = 3", "tools: a list of texts is wanted, got 3"),
        ("[gates]\nmin_pear = 3", "[gates] min_pear: there is no such key; did you mean"),
        ("[retrieval]\noffer = 0", "at least 1"),
        ("[search]\nlimits = 3", "[search] limits: 'agentkit search' has no such option"),
        ("[search]\nlimit = 'many'", "[search] limit: a whole number is wanted, got 'many'"),
        ("[search]\nlimit = true", "[search] limit: a whole number is wanted, got True"),
        ("[search]\nlimit = inf", "[search] limit: a whole number is wanted, got inf"),
        ("[search]\nlimit = -1", "[search] limit: -1 is not in the range"),
        ("[search]\nstore = []", "[search] store: a text is wanted, got []"),
        ("[search]\njson = 3", "[search] json: true or false is wanted, got 3"),
        ("[serach]\nlimit = 1", "[serach]"),
        ("[search.more]\nlimit = 1", "[search] more: 'agentkit search' has no such option"),
    ],
)
def test_what_nothing_knows_is_an_error(folder, text, words):
    """A mistake in the file is told with its place, and is a misuse; nothing is done."""
    project(folder, text + "\n")
    result = run("search", "price")
    assert result.exit_code == 2
    assert words in result.stderr
    assert "agentkit.toml" in result.stderr
    assert not (folder / ".agentkit").exists()


def test_gates_and_retrieval_reach_the_parts(folder):
    """Each number that the file gives is the one that is used; the others have their defaults."""
    project(
        folder,
        "[gates]\ncanary = true\ncanary_share = 0.2\nmin_gain = 0.1\n[retrieval]\noffer = 2\n",
    )
    found = find_project()
    assert found.policy.canary
    assert found.policy.canary_share == 0.2
    assert not found.policy.shadow
    assert found.rules.min_gain == 0.1
    assert found.rules.alpha == 0.05
    assert found.retriever is not None


def test_a_new_project_is_whole(folder):
    """What ``init`` writes is read back: tools that load, tasks that name them, all commented."""
    result = run("init")
    assert result.exit_code == 0
    assert "agentkit eval" in result.stderr
    tools = load_tools(["tools.py"])
    tasks = load_tasks(folder / "tasks.jsonl", tools=tools).tasks
    assert {one.name for one in tools} == {name for task in tasks for name in task.offered}
    assert len(tasks) >= 30
    written = tomllib.loads((folder / "agentkit.toml").read_text())
    assert written["tools"] == ["tools.py"]
    assert find_project().defaults["benchmark"] == "tasks.jsonl"
    assert find_project().defaults["store_url"] == "sqlite:///.agentkit/library.db"


@pytest.fixture
def checked_project(invoke, tmp_path, monkeypatch):
    """A project as ``agentkit init`` makes it, with its tools in the library."""
    monkeypatch.delenv("AGENTKIT_STORE")
    assert invoke("init", ".").exit_code == 0
    assert invoke("tools", "add").exit_code == 0
    return tmp_path


def found(invoke):
    """What the check found, by code."""
    told = json.loads(invoke("check", "--json").stdout)
    return {one["code"]: one for one in (*told["faults"], *told["notes"])}


def put(checked_project, *definitions, author="program", signer=None):
    """Write definitions into the project's store, told by an event."""
    store = open_store(f"sqlite:///{checked_project / '.agentkit' / 'library.db'}")
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
def test_a_store_that_everybody_can_read(invoke, checked_project):
    """Open files are named with the command that closes them."""
    (checked_project / ".agentkit").chmod(0o755)
    one = found(invoke)["readable"]
    assert one["advice"] == f"chmod o= {one['place']}"
    assert invoke("check").exit_code == 1
    (checked_project / ".agentkit").chmod(0o750)
    assert invoke("check").exit_code == 0


def test_keys_in_files_of_the_project(invoke, checked_project):
    """A key is named by its line, and not repeated."""
    key = "sk-" + "a1" * 20
    with (checked_project / "tools.py").open("a") as file:
        file.write(f"\nKEY = {key!r}\n")
    one = found(invoke)["key"]
    assert one["place"].startswith("tools.py:") or "/tools.py:" in one["place"]
    assert key not in invoke("check").stdout


def test_a_server_that_nobody_approved(invoke, checked_project):
    """Tools of an MCP server that a program brought are named; those of a person are not."""
    tool = ToolDefinition(name="lookup", origin=Origin(kind="mcp", reference="https://mcp.example"))
    put(
        checked_project,
        replace(tool, signature=replace(tool.signature, effects=Effects(writes=False))),
    )
    one = found(invoke)["server"]
    assert (one["place"], one["is_note"]) == ("https://mcp.example", False)
    assert "lookup" in one["message"]
    put(checked_project, author="person")
    assert "server" in found(invoke)


def test_tools_from_outside_that_write_unasked(invoke, checked_project):
    """A note names those that nobody is asked about; destructive and read-only ones are not told."""
    effects = {
        "wild": Effects(),
        "reads": Effects(writes=False),
        "kills": Effects(destructive=True),
    }
    for name, declared in effects.items():
        tool = ToolDefinition(name=name, origin=Origin(kind="openapi", reference="pets.yaml"))
        put(checked_project, replace(tool, signature=replace(tool.signature, effects=declared)))
    one = found(invoke)["unasked"]
    assert (one["is_note"], "model calls wild from outside" in one["message"]) == (True, True)
    assert invoke("check").exit_code == 0


def test_events_without_a_signature_among_signed_ones(invoke, checked_project):
    """A writer that does not sign in a project that does is named by its first event."""
    put(checked_project, signer=read_signer("0" * 32))
    assert "unsigned" not in found(invoke)
    put(checked_project)
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
def test_passwords_in_code(invoke, checked_project, line):
    """Literals that are called passwords, and those in URLs, are named and not repeated."""
    with (checked_project / "tools.py").open("a") as file:
        file.write(f"\n{line}\n")
    ran = invoke("check")
    assert ran.exit_code == 1
    assert "what looks like a password" in ran.stdout
    assert "hunter2" not in ran.stdout
