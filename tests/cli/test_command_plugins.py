"""Commands that plugins bring, found by their entry points."""

from __future__ import annotations

import sys

import pytest

MODULES = {
    "brought": 'import click\n\n@click.command()\ndef shout():\n    """Say it loudly."""\n    click.echo("HELLO")\n',
    "torn": "import nothing_of_this_name\n",
    "other": "shout = 7\n",
}


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a distribution that registers commands; gives the folder."""
    folder = tmp_path / "site"
    folder.mkdir()
    for name, text in MODULES.items():
        (folder / f"{name}_words.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))

    def register(name, *entries):
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = "\n".join(("[agentkit.commands]", *entries))
        (info / "entry_points.txt").write_text(f"{lines}\n")

    yield register
    for name in MODULES:
        sys.modules.pop(f"{name}_words", None)


def test_a_plugin_brings_a_command(invoke, install):
    """It stands on the help page by its place, without being imported, and runs when typed."""
    install("brought", "shout = brought_words:shout")
    page = invoke("--help").stdout
    assert "Commands of plugins:" in page
    assert "shout" in page.partition("Commands of plugins:")[2]
    assert "brought_words" not in sys.modules
    assert invoke("shout").stdout == "HELLO\n"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("shout = torn_words:shout", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("shout = brought_words:absent", "AttributeError"),
        ("shout = other_words:shout", "is a int and no click command"),
    ],
)
def test_a_broken_plugin_is_one_line(invoke, install, entry, said):
    """What is wrong is said when the command is typed; the help page and others still work."""
    install("broken", entry)
    result = invoke("shout")
    assert result.exit_code == 1
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert "shout" in invoke("--help").stdout
    assert invoke("--version").exit_code == 0


def test_two_plugins_for_one_word_are_refused(invoke, install):
    """Nobody can know which one was meant."""
    install("one", "shout = brought_words:shout")
    install("two", "shout = other_words:shout")
    result = invoke("shout")
    assert result.exit_code == 1
    assert "several plugins bring 'shout'" in result.stderr


def test_the_pip_line_of_an_absent_plugin_is_told(invoke, monkeypatch):
    """A word of a plugin of ours that is not installed names what to install."""
    monkeypatch.setattr("agentkit.cli.boundary._plugins", tuple)
    result = invoke("bench", "retrieval")
    assert result.exit_code == 2
    assert "Run: pip install agentkit-bench" in result.stderr
