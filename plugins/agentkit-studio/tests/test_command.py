"""``agentkit studio`` and ``agentkit demo --studio``: who gets in, and what is served."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from agentkit.cli.main import main
from agentkit.server import running

TOOLS = '''
from agentkit import tool

@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b
'''


@pytest.fixture
def served(monkeypatch, tmp_path):
    """What would be served: the arguments of the server, which is not started."""
    kept = {}

    def serve(app, *, host, port, on_start):
        on_start(f"http://{host}:{port}")
        kept.update(app=app, host=host, port=port)
        kept["login"] = TestClient(app).get("/login").status_code

    monkeypatch.setattr(running, "serve", serve)
    monkeypatch.chdir(tmp_path)
    return kept


def run(*arguments):
    """One command, as it is typed."""
    return CliRunner().invoke(main, ["studio", "--store", "sqlite:///library.db", *arguments])


def test_on_this_machine_a_fresh_key_is_printed(served):
    """Whoever has the address may do everything, with the tools that were named."""
    done = run()
    assert done.exit_code == 0, done.output
    assert re.search(r"http://127\.0\.0\.1:8787/\?once=[\w-]{32}", done.stderr)
    assert re.search(r"sign in with the key [\w-]{32}", done.stderr)
    [role] = served["app"].state.studio.access.roles.values()
    assert (role, served["login"]) == ("operator", 200)
    assert served["app"].state.studio.agents is None


def test_with_tools_there_is_an_agent(served, tmp_path):
    """Of any version and model."""
    (tmp_path / "shop.py").write_text(TOOLS)
    assert run("--tools", "shop.py", "--model", "openai-compatible:m@http://x").exit_code == 0
    agent = served["app"].state.studio.agents
    assert agent is not None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0"], "beyond this machine users need keys"),
        (["--keys-from", "absent.txt"], "cannot be read"),
        (["--keys-from", "ABSENT"], "the environment variable ABSENT is not set"),
        (["--keys-from", "ann=key-of-ann-0123456789"], "the name of an environment variable"),
    ],
)
def test_what_would_let_anybody_in_is_refused(served, options, words):
    """In one line, before anything is served."""
    done = run(*options)
    assert done.exit_code == 2
    assert words in done.stderr
    assert served == {}


def test_a_team_has_keys_and_roles(served, tmp_path):
    """Everybody without a role reads."""
    (tmp_path / "users.txt").write_text("ann=key-of-ann-0123456789\nbob=key-of-bob-0123456789\n")
    done = run("--keys-from", "users.txt", "--reviewer", "ann", "--prefix", "/studio")
    assert done.exit_code == 0, done.output
    access = served["app"].state.studio.access
    assert (access.named("ann").role, access.named("bob").role) == ("reviewer", "viewer")
    assert "once=" not in done.stderr


PROJECT = """
store = "sqlite:///shop.db"
tools = ["shop.py"]
model = "openai-compatible:m@http://x"

[gates]
alpha = 0.01

[studio]
keys-from = "STUDIO_KEYS"
viewer = ["vera"]
reviewer = ["ann"]
operator = ["ada"]
prefix = "/studio"
"""


def test_a_project_names_its_users_and_their_roles(served, tmp_path, monkeypatch):
    """Beside its store, tools and gates; keys stay in the environment, and flags go before."""
    (tmp_path / "agentkit.toml").write_text(PROJECT)
    (tmp_path / "shop.py").write_text(TOOLS)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    keys = {name: f"key-of-{name}-0123456789" for name in ("vera", "ann", "eve")}
    monkeypatch.setenv("STUDIO_KEYS", ",".join(f"{name}={key}" for name, key in keys.items()))
    done = CliRunner().invoke(main, ["studio", "--operator", "ann"])
    assert done.exit_code == 0, done.output
    studio = served["app"].state.studio
    roles = {name: studio.access.named(name).role for name in ("vera", "ann", "ada", "eve")}
    assert roles == {"vera": "viewer", "ann": "operator", "ada": "nobody", "eve": "nobody"}
    assert (studio.agents is not None, studio.gates.alpha) == (True, 0.01)
    assert (tmp_path / "shop.db").exists()
    (tmp_path / "users.txt").write_text("ann=key-of-ann-0123456789")
    done = CliRunner().invoke(main, ["studio", "--keys-from", "users.txt"])
    assert done.exit_code == 0, "a file of the project is found from a folder below"
    done = CliRunner().invoke(main, ["studio"])
    assert "There is no key of ada yet." in done.stderr
    assert studio.access.named("ada").role != served["app"].state.studio.access.named("ada").role


def test_a_wrong_word_in_the_table_is_told(served, tmp_path):
    """With what was meant; other commands do not mind the table, whether or not it is read."""
    (tmp_path / "agentkit.toml").write_text('[studio]\nreviewers = ["ann"]\n')
    done = run()
    assert done.exit_code == 2
    assert "did you mean 'reviewer'" in done.stderr
    assert served == {}
    assert CliRunner().invoke(main, ["check", "--help"]).exit_code == 0
    found = CliRunner().invoke(main, ["episodes", "list", "--store", "memory:"])
    assert "[studio]" not in found.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('port = "abc"', "[studio] port: a whole number is wanted, got 'abc'"),
        ("port = [1]", "[studio] port: a whole number is wanted, got [1]"),
        ("port = -1", "[studio] port: -1 is not in the range"),
        ("https = 3", "[studio] https: true or false is wanted, got 3"),
        ('operator = "ada"', "[studio] operator: a list of texts is wanted, got 'ada'"),
        ("operator = [1]", "[studio] operator: a list of texts is wanted, got [1]"),
        ("host = 5", "[studio] host: a text is wanted, got 5"),
        ('prefix = "//evil.example"', "prefix is '//evil.example'; it is a path"),
        ('user_header = "a b"', "'a b' is no name of a header"),
    ],
)
def test_an_odd_value_in_the_table_is_told(served, tmp_path, line, words):
    """In words, before anything is served."""
    (tmp_path / "agentkit.toml").write_text(f"[studio]\n{line}\n")
    done = run()
    assert (done.exit_code, served) == (2, {})
    assert words in done.stderr
