"""``agentkit.toml``, which gives options their defaults, and ``agentkit init``, which writes one."""

import json
import tomllib

import pytest
from click.testing import CliRunner

from agentkit.cli.loading import load_tools
from agentkit.cli.main import main
from agentkit.cli.project import find_project
from agentkit.evaluation import load_tasks

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
    assert run("tools", "import", "t.json").exit_code == 0
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
    assert run("tools", "import", "two.json").exit_code == 0
    assert len(json.loads(run("search", "price", "--json").stdout)["hits"]) == 1
    project(folder, 'store = "one.db"\n[search]\nstore = "two.db"\n')
    assert "there is no store at two.db" in run("search", "price").stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("store = ", "Invalid value"),
        ("tool = []", "tool: there is no such key; did you mean 'tools'?"),
        ("tools = 3", "tools: a list of texts is wanted, got 3"),
        ("[gates]\nmin_pear = 3", "[gates] min_pear: there is no such key; did you mean"),
        ("[gates]\nalpha = 0.9", "alpha"),
        ("[retrieval]\noffer = 0", "at least 1"),
        ("[search]\nlimits = 3", "[search] limits: 'agentkit search' has no such option"),
        ("[search]\nlimit = 'many'", "[search] limit: 'many' is not a valid integer"),
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
