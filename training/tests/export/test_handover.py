"""One folder with all that training made: adapter, library, and what it says of itself."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from agentkit import Agent, open_store, tool
from agentkit.errors import ArtifactError
from agentkit.evolution import ToolManager
from agentkit.library import Author, LibraryChange
from agentkit.library.chain import HmacKey
from agentkit.models.base import ModelSettings
from agentkit_training.errors import ExportError
from agentkit_training.export.handover import export_library, hand_over, load_handover
from agentkit_training.files import file_digest


@tool
def get_price(item: str) -> int:
    """Get the price of an item."""
    return len(item)


@pytest.fixture
def store():
    """A library that the Tool Manager wrote twice: a tool, then better words for it."""
    opened = open_store("memory:")
    manager = ToolManager(opened, author=Author(kind="program", name="training"))
    manager.register([get_price.definition], reason="the first tool")
    old = get_price.definition
    new = replace(old, description=replace(old.description, summary="Price in euros."))
    change = LibraryChange(proposal_id="words", upserts=(new,), reason="says the currency")
    manager.edit(lambda _: change)
    return opened


@pytest.fixture
def made(policy, tiny_gguf, with_adapter, store, tmp_path):
    """A hand-over with an adapter and a library."""
    folder = tmp_path / "made"
    trained = with_adapter(policy, target_modules=["q_proj"])
    hand_over(folder, base=tiny_gguf, policy=trained, store=store)
    return folder


def test_the_runtime_answers_with_the_adapter_and_the_library(made, tiny_gguf, monkeypatch):
    """An agent takes the model's name and the library from the hand-over, and code from here."""
    pytest.importorskip("agentkit_local", reason="the plugin is not installed")
    monkeypatch.setenv("AGENTKIT_LOCAL_THREADS", "1")
    taken = load_handover(made, base=tiny_gguf)
    library = taken.artifact.library
    assert library["get_price"].definition.description.summary == "Price in euros."
    settings = ModelSettings(max_tokens=3)
    agent = Agent(taken.model, library=library, tools=[get_price], settings=settings)
    result = asyncio.run(agent.run("Hello"))
    assert agent.model.name.startswith("local:tiny+adapter@")
    assert result.episode.library_version == 2
    agent.model.close()


def test_the_manifest_says_what_it_was_made_of(made, tiny_gguf):
    """Base weights with digest, versions, every file; and no place of this machine."""
    told = json.loads((made / "handover.json").read_text())
    assert told["base"]["name"] == "tiny.gguf"
    assert len(told["base"]["sha256"]) == 64
    assert told["library_version"] == 2
    assert {"agentkit-training", "torch", "peft"} <= told["versions"].keys()
    files = {path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file()}
    assert files == {*told["files"], "handover.json"}
    assert str(tiny_gguf.parent) not in (made / "handover.json").read_text()


def test_the_library_keeps_who_and_why(made, tiny_gguf):
    """The artifact has the history that the Tool Manager wrote."""
    artifact = load_handover(made, base=tiny_gguf).artifact
    assert artifact.has_history
    reasons = [one.change.reason for one in artifact.changes]
    assert reasons == ["the first tool", "says the currency"]
    assert len(artifact.events) >= 2


def test_what_was_written_around_the_tool_manager_is_refused(store, tmp_path):
    """A change that passed no gate does not reach the runtime."""
    sly = replace(get_price.definition, name="get_anything")
    store.commit(LibraryChange(proposal_id="sly", upserts=(sly,)), expected_version=2)
    with pytest.raises(ExportError, match="no event tells of library version 3"):
        export_library(store, tmp_path / "library.json")
    assert not list(tmp_path.iterdir())


def test_a_signed_library_is_checked(policy, tiny_gguf, store, tmp_path):
    """With a key the artifact must be signed by it."""
    key, other = (HmacKey(secret=bytes([at]) * 32) for at in (1, 2))
    hand_over(tmp_path / "made", base=tiny_gguf, store=store, signer=key)
    taken = load_handover(tmp_path / "made", base=tiny_gguf, verifier=key)
    assert taken.artifact.signature.startswith("hmac-sha256:")
    with pytest.raises(ArtifactError, match="another key"):
        load_handover(tmp_path / "made", base=tiny_gguf, verifier=other)


def test_a_library_alone_goes_with_the_base_weights(tiny_gguf, store, tmp_path):
    """Where only the library evolved, the model is the one that there was."""
    taken = hand_over(tmp_path / "made", base=tiny_gguf, store=store)
    assert (taken.manifest.kind, taken.adapter) == ("unchanged", None)
    assert taken.model == f"local:{tiny_gguf}"


def test_a_policy_that_was_tuned_as_a_whole_brings_its_weights(policy, tiny_gguf, tmp_path):
    """Without an adapter the weights themselves are handed over, and no library is claimed."""
    taken = hand_over(tmp_path / "made", base=tiny_gguf, policy=policy)
    assert taken.manifest.kind == "weights"
    assert taken.artifact is None
    assert taken.model == f"local:{tmp_path / 'made' / 'model.gguf'}"
    assert "adapter" not in taken.command


def test_a_hand_over_that_fails_leaves_nothing(policy, tiny_gguf, with_adapter, tmp_path):
    """An empty library is refused after the adapter was written, and no half is left behind."""
    empty = open_store("memory:")
    with pytest.raises(Exception, match="nothing to export"):
        hand_over(tmp_path / "made", base=tiny_gguf, policy=with_adapter(policy), store=empty)
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.gguf"]


def test_a_folder_of_something_else_is_left_alone(tiny_gguf, store, tmp_path):
    """Whoever gives the wrong folder loses nothing."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    for place in (tmp_path / "mine", tmp_path / "mine" / "notes.txt"):
        with pytest.raises(ExportError, match="no earlier hand-over"):
            hand_over(place, base=tiny_gguf, store=store)
    assert (tmp_path / "mine" / "notes.txt").read_text() == "mine"


def test_other_base_weights_are_told_by_their_digest(made, tiny_gguf, tmp_path):
    """An adapter for one file of weights does not go with another one."""
    other = tmp_path / "other.gguf"
    other.write_bytes(tiny_gguf.read_bytes() + b"\0")
    with pytest.raises(ExportError, match=r"trained on tiny\.gguf .*other\.gguf has"):
        load_handover(made, base=other)


def test_weights_of_ones_own_have_to_be_given(made):
    """Their place is not in the folder, and the message says how to give it."""
    with pytest.raises(ExportError, match=r"load_handover\(folder, base=FILE\)"):
        load_handover(made)


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda folder: (folder / "handover.json").unlink(), "it has no handover.json"),
        (lambda folder: (folder / "adapter.gguf").unlink(), "lacks adapter.gguf"),
        (lambda folder: (folder / "library.json").unlink(), "lacks library.json"),
        (lambda folder: (folder / "adapter.gguf").write_bytes(b"GGUF"), "adapter.gguf was changed"),
        (lambda folder: (folder / "handover.json").write_text("{"), "can not be read"),
        (lambda folder: _change(folder, format=2), "of form 2"),
        (lambda folder: _change(folder, kind="soup"), "kind"),
        (lambda folder: _change(folder, kind="weights"), r"names no model\.gguf"),
        (lambda folder: _change(folder, files={"../tiny.gguf": "0"}), "not in its folder"),
        (lambda folder: _change(folder, surplus=1), "surplus"),
    ],
)
def test_what_is_missing_or_changed_is_named(made, tiny_gguf, damage, complaint):
    """Each damage has a message of its own."""
    damage(made)
    with pytest.raises(ExportError, match=complaint):
        load_handover(made, base=tiny_gguf)


def _change(folder, **parts):
    told = json.loads((folder / "handover.json").read_text())
    (folder / "handover.json").write_text(json.dumps(told | parts))


def test_another_library_in_its_place_is_noticed(made, tiny_gguf, store):
    """Also where its file's digest was made to fit: the artifact has a digest of its own."""
    ToolManager(store).register([replace(get_price.definition, name="get_more")], reason="later")
    export_library(store, made / "library.json")
    told = json.loads((made / "handover.json").read_text())["files"]
    _change(made, files=told | {"library.json": file_digest(made / "library.json")})
    with pytest.raises(ArtifactError, match=r"library\.json"):
        load_handover(made, base=tiny_gguf)
