"""Texts of imported tools can not steer the terminal that shows them."""

import json

import pytest

HOSTILE = {
    "name": "evil",
    "description": "\x1b[31mred [bold]x[/bold] \u202etxt",
    "parameters": {
        "type": "object",
        "properties": {"a\x1b[2J": {"type": "string", "description": "\x1b]0;title\x07"}},
    },
}


@pytest.fixture
def imported(invoke, tmp_path):
    """A library with one hostile tool."""
    file = tmp_path / "tools.json"
    file.write_text(json.dumps([HOSTILE]), encoding="utf-8")
    assert invoke("tools", "import", str(file)).exit_code == 1  # its words are screened
    assert invoke("tools", "import", str(file), "--overrule", "evil").exit_code == 0


@pytest.mark.parametrize(
    "command", [("tools", "show", "evil"), ("tools", "list"), ("log", "--tool", "evil")]
)
def test_nothing_invisible_is_printed(invoke, imported, command):
    """Controls and marks of direction are written out; markup of rich stays text."""
    result = invoke(*command)
    assert result.exit_code == 0
    assert all(one.isprintable() or one == "\n" for one in result.output)
    if "show" in command:
        assert "⟨U+001B⟩[31mred [bold]x[/bold] ⟨U+202E⟩txt" in result.output
        assert "⟨U+001B⟩]0;title⟨U+0007⟩" in result.output
