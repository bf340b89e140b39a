"""``--version``, and where things lie by default."""

import platform

from click.testing import CliRunner

import agentkit
from agentkit.cli.main import COMMANDS, main
from agentkit.cli.options import default_store_url


def test_the_version_is_that_of_the_package(invoke):
    """``--version`` and ``-V`` print one line with that of Python."""
    line = f"agentkit {agentkit.__version__}, Python {platform.python_version()}\n"
    assert invoke("--version").stdout == invoke("-V").stdout == line


def test_every_command_is_on_the_help_page(invoke):
    """The help page lists each command with a sentence, and each one has help of its own."""
    page = invoke("--help").stdout
    for name, (_, words) in COMMANDS.items():
        assert words in page
        assert invoke(name, "--help").exit_code == 0


def test_the_default_store_lies_in_the_users_data_folder(tmp_path, monkeypatch):
    """Without --store a library is made in the data folder, wherever the command is started."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("AGENTKIT_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.json").write_text('[{"name": "a"}]')
    result = CliRunner().invoke(main, ["tools", "import", "t.json"])
    assert result.exit_code == 0, result.stderr
    assert default_store_url() == f"sqlite:///{tmp_path}/data/agentkit/library.db"
    assert (tmp_path / "data" / "agentkit" / "library.db").exists()
