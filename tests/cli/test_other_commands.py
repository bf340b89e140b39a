"""``--version`` and ``--help``."""

import platform

import agentkit
from agentkit.cli.main import COMMANDS


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
