"""``--library`` of ``run`` and ``chat``: a library that evolved elsewhere, with code from here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import open_store
from agentkit.evolution import ToolManager
from agentkit.interop.export import artifact_of, write_artifact
from agentkit.library import LibraryChange


@pytest.fixture
def evolved(invoke, tools_file, tmp_path):
    """An artifact whose description of ``add`` is the second one."""
    place = f"sqlite:///{tmp_path / 'training.db'}"
    invoke("tools", "add", "desk.py", "--store", place)
    with_words = open_store(place)
    old = with_words.load()["add"].definition
    new = replace(old, description=replace(old.description, summary="Add two whole numbers."))
    change = LibraryChange(proposal_id="words", upserts=(new,), reason="clearer")
    ToolManager(with_words).edit(lambda _: change)
    write_artifact(artifact_of(with_words), tmp_path / "shop.json")
    with_words.close()
    return tmp_path / "shop.json"


def test_tools_in_code_run_under_the_words_of_the_library(invoke, as_json, evolved, script):
    """The episode is pinned to the library's version, and the code of --tools is called."""
    script(["add", {"a": 40}], "It is 42.")
    asked = ("run", "40 + 2?", "--model", "script:a", "--tools", "desk.py")
    result = invoke(*asked, "--library", str(evolved))
    assert result.stdout == "It is 42.\n"
    assert "gives 42" in result.stderr
    assert as_json("episodes", "show", "last")["library_version"] == 2


def test_a_call_without_code_is_left_to_you(invoke, evolved, script):
    """With --catalogue, it is checked and printed."""
    script(["add", {"a": 5}])
    asked = ("run", "5 + 2?", "--library", "shop.json", "--model", "script:a")
    result = invoke(*asked, "--catalogue")
    assert result.stdout == "add(a=5)\n"


def test_a_library_that_is_not_there_is_told(invoke, script):
    """By the name that was given."""
    result = invoke("run", "?", "--model", "script:a", "--library", "absent.json")
    assert result.exit_code == 2
    assert "absent.json" in result.stderr
