"""What people edited in files of tools: ``check`` lists it, ``tools add`` suggests or discards it."""

from __future__ import annotations

import json

import pytest

from agentkit import ToolDefinition, open_store
from agentkit.library import LibraryChange
from agentkit.tools.definition import Description


@pytest.fixture
def store_url(tmp_path):
    """A directory store with two tools."""
    url = f"dir:{tmp_path / 'library'}"
    store = open_store(url)
    tools = tuple(
        ToolDefinition(name=name, description=Description(summary=f"{name} a host."))
        for name in ("ping", "trace")
    )
    store.commit(LibraryChange(proposal_id="1", upserts=tools), expected_version=0)
    store.close()
    return url


@pytest.fixture
def edit(tmp_path):
    """Edits the file of a tool."""

    def write(name: str, old: str, new: str) -> None:
        path = tmp_path / "library" / "tools" / f"{name}.yaml"
        path.write_text(path.read_text().replace(old, new))

    return write


def test_edits_are_listed_with_their_faults(invoke, edit):
    """An edited file waits; one that can not be taken is a fault, with status 1."""
    edit("ping", "a host", "a host by name")
    waits = invoke("check")
    assert (waits.exit_code, "agentkit tools add --edited" in waits.stdout) == (0, True)
    edit("trace", "summary", "sumary")
    result = invoke("check", "--json")
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert [one["place"] for one in told["notes"] if one["code"] == "edit"] == ["ping"]
    (fault,) = told["faults"]
    assert (fault["place"], fault["code"]) == ("trace", "edit")
    assert "trace.yaml: " in fault["message"]
    assert "`description.sumary`" in fault["message"]
    assert "let git bring it back" in fault["advice"]
    assert "sumary" in invoke("check").stdout


def test_edits_are_proposed_and_decided(invoke, edit, as_json):
    """An edit becomes a proposal, which the other commands show, approve and bring on."""
    edit("ping", "a host", "a host by name")
    edit("trace", "a host", "a host by name")
    (came,) = as_json("tools", "add", "--edited", "ping", "--reason", "clearer")
    assert (came["outcome"], came["state"]) == ("proposed", "validated")
    assert "validated" in invoke("tools", "add", "--edited", "ping").stdout
    as_json("review", "approve", came["proposal_id"])
    assert "trace.yaml: changed by hand" in invoke("check").stdout
    assert "by name" in invoke("tools", "show", "ping").stdout


def test_deleted_files_are_taken_out_when_asked(invoke, as_json, tmp_path):
    """A deleted file is told, and --remove takes the tool out."""
    (tmp_path / "library" / "tools" / "ping.yaml").unlink()
    assert "--remove takes the tool out" in invoke("tools", "add", "--edited").stdout
    (came,) = as_json("tools", "add", "--edited", "--remove")
    assert came["outcome"] == "removed"
    assert [one["name"] for one in as_json("tools", "list")] == ["trace"]
