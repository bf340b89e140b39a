"""``agentkit tools doctor``: a check-up from the shell."""

import json

import pytest

SICK = [
    {
        "name": "find_city",
        "description": "<p>Find a <b>city</b> by its name.</p>",
        "inputSchema": {
            "type": "object",
            "properties": {"name": {"type": "string", "description": "The name."}},
            "oneOf": [{"required": ["name"]}],
        },
    },
    {
        "name": "get_weather",
        "description": "How warm it is in a place, and whether it rains.",
        "inputSchema": {"type": "object", "properties": {"place": {"type": ["string", "null"]}}},
    },
]
HEALTHY = [
    {
        "name": "send_mail",
        "description": "Send a mail to a person, with a subject.",
        "inputSchema": {
            "type": "object",
            "properties": {"to": {"type": "string", "description": "Address of the reader."}},
        },
        "outputSchema": {"type": "string"},
    }
]


@pytest.fixture
def catalogue(tmp_path):
    """Writes tools to a file, as the answer of an MCP server, and gives its path."""

    def write(tools, name="tools.json"):
        path = tmp_path / name
        path.write_text(json.dumps({"tools": tools}))
        return str(path)

    return write


@pytest.fixture
def stored(invoke, catalogue):
    """The sick tools, in the library."""
    assert invoke("tools", "import", catalogue(SICK)).exit_code == 0


def test_a_file_is_examined_without_a_library(invoke, catalogue, tmp_path):
    """The table names each kind of finding once; no store is made."""
    result = invoke("tools", "doctor", catalogue(SICK))
    assert result.exit_code == 0
    assert result.stdout.startswith("2 tools, ")
    assert "refused_root" in result.stdout
    assert result.stdout.index("error") < result.stdout.index("warning")
    assert not list(tmp_path.glob("*.db"))


def test_one_check_is_shown_in_full(invoke, catalogue):
    """--check shows why it matters, what to do and each tool."""
    result = invoke("tools", "doctor", catalogue(SICK), "--check", "refused_root")
    assert "why: " in result.stdout
    assert "do: " in result.stdout
    assert "find_city" in result.stdout
    assert "get_weather" not in result.stdout


def test_strict_fails_on_errors_alone(invoke, catalogue):
    """--exit-code is for CI: warnings and notes do not fail it."""
    assert invoke("tools", "doctor", catalogue(SICK), "--exit-code").exit_code == 1
    assert invoke("tools", "doctor", catalogue(HEALTHY), "--exit-code").exit_code == 0
    assert invoke("tools", "doctor", catalogue(SICK)).exit_code == 0
