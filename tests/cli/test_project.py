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


def test_commands_of_a_group_have_no_table(folder):
    """A table of a group would set nothing, so it is refused where the group is used."""
    project(folder, "[review]\nreason = 'x'\n")
    result = run("review", "list")
    assert result.exit_code == 2
    assert "[review]: 'agentkit review' has commands of its own" in result.stderr


def test_tools_of_the_project_are_no_arguments_of_other_ways_to_add(folder):
    """A composite is tried with the project's code, and edited files are all of the store's."""
    project(folder, 'store = "dir:library"\ntools = ["shop.py"]\n')
    assert run("tools", "add").exit_code == 0
    (folder / "twice.py").write_text(
        '@composite(examples=[{"arguments": {"item": "a"}, "result": 3}])\n'
        'def cost(item: str) -> int:\n    "What it costs."\n    return price(item)\n'
    )
    tried = run("tools", "add", "--composite", "twice.py", "--run-undeclared")
    assert "takes no further arguments" not in tried.stderr
    assert "unknown_child" not in tried.stdout + tried.stderr
    assert run("tools", "add", "--edited").exit_code == 0
    typed = run("tools", "add", "--tools", "shop.py")
    assert typed.exit_code == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('tools = ["gone.py"]', "tools: gone.py: there is no such file"),
        ('tools = ["no.module"]', "tools: no.module can not be imported"),
        ('tasks = "gone.jsonl"', "tasks: gone.jsonl does not exist"),
        ('tasks = "empty.jsonl"', "tasks: empty.jsonl is empty"),
        ('environment = "gone.py"', "environment: gone.py: there is no such file"),
        ('store = "odd://x"', "store: no store for 'odd://x'"),
        ('model = "odd:x"', "model: no model for 'odd:x'"),
    ],
)
def test_what_the_file_names_and_is_not_there(folder, text, words):
    """One line with the key and the file that it stands in, and a misuse."""
    rest = {"tools": '["shop.py"]', "tasks": '"one.jsonl"'}
    key = text.partition(" ")[0]
    project(folder, "\n".join([text, *(f"{one} = {rest[one]}" for one in rest if one != key)]))
    gold = {"name": "price", "arguments": {"item": "a"}}
    task = {"id": "a", "request": "What is a?", "expects": {"calls": [gold]}}
    (folder / "one.jsonl").write_text(json.dumps(task))
    (folder / "empty.jsonl").write_text("\n")
    result = run("eval")
    assert result.exit_code == 2
    assert f"Error: {folder / 'agentkit.toml'}: {words.format(folder)}" in result.stderr
    assert len(result.stderr.partition("Error: ")[2].splitlines()) == 1


def test_two_tools_of_one_name(folder):
    """In two files or in one, where Python drops the first: both places are named, exit status 2."""
    project(folder, 'tools = ["shop.py", "more.py"]\n')
    (folder / "more.py").write_text(SHOP)
    twice = SHOP + SHOP.partition("tool\n")[2].lstrip()
    for command in (("run", "hi"), ("eval", "any.jsonl"), ("evolve",), ("chat",)):
        result = run(*command)
        assert result.exit_code == 2
        assert f"({folder}/shop.py:4 and {folder}/more.py:4)" in result.stderr
    (folder / "twice.py").write_text(twice)
    result = run("run", "hi", "--tools", "twice.py")
    assert result.exit_code == 2
    assert f"({folder}/twice.py:4 and {folder}/twice.py:12)" in result.stderr


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


def test_init_overwrites_nothing(folder):
    """A file that is there stays as it is, and nothing is written beside it."""
    (folder / "tools.py").write_text("mine")
    result = run("init")
    assert result.exit_code == 2
    assert "tools.py" in result.stderr
    assert [one.name for one in folder.iterdir()] == ["tools.py"]
    assert (folder / "tools.py").read_text() == "mine"


def test_init_for_another_model(folder):
    """The model's name is written whatever is in it, and what a small model needs is left out."""
    name = 'litellm:a"b\\c'
    done = json.loads(run("init", "desk", "--model", name, "--json").stdout)
    assert done["next"][:2] == ["cd desk", "agentkit eval"]
    written = tomllib.loads((folder / "desk" / "agentkit.toml").read_text())
    assert written["model"] == name
    assert "eval" not in written
    assert find_project(folder / "desk").defaults["model"] == name


def test_an_option_of_the_project_refuses_no_import(folder):
    """``agentkit import`` minds what was typed, not the tools that the project's file names."""
    (folder / "agentkit.toml").write_text('tools = ["tools.py"]\n')
    (folder / "none.jsonl").write_text('{"episode_id": "e1"}\n')
    refused = run("import", "none.jsonl", "--tools", "tools.py")
    assert (refused.exit_code, "--tools belongs to artifacts" in refused.stderr) == (2, True)
    assert "belongs to artifacts" not in run("import", "none.jsonl").stderr
