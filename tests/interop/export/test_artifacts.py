"""Artifacts in files, read and refused, opened and restored; and the formats of providers."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.errors import ArtifactError, DefinitionError, UsageError
from agentkit.interop.export import (
    ArtifactStore,
    artifact_digest,
    artifact_of,
    artifact_text,
    parse_artifact,
    read_artifact,
    render,
    signed,
    write_artifact,
)
from agentkit.library import Store
from agentkit.library.chain import HmacKey
from agentkit.testing import sample_library
from agentkit.tools.definition import Signature
from agentkit.tools.sources.json_records import definitions_from_json

KEY = HmacKey(secret=b"0123456789abcdef0123456789abcdef")


def test_an_artifact_tells_all_of_a_store(store: Store) -> None:
    """Every version, revision and event of a store is in its artifact, with who and why."""
    read = ArtifactStore(parse_artifact(artifact_text(artifact_of(store)).encode()))

    assert read.versions() == tuple(store.versions())
    for version in (0, *store.versions()):
        assert read.load(version).digest == store.load(version).digest
    for name in (*store.load().tools, "calendar_cancel_event"):
        assert read.history(name) == tuple(store.history(name))
    assert list(read.events()) == list(store.events())


def test_gate_evidence_stands_beside_the_tools(store: Store) -> None:
    """Why a revision serves is told without reading the chain."""
    (evidence,) = artifact_of(store, history=False).evidence

    assert [evidence[k] for k in ("tool", "state", "author")] == ["add", "active", "small-model"]
    assert [(one["gate"], one["decision"]) for one in evidence["reports"]] == [("offline", "pass")]


def test_an_earlier_version_tells_nothing_later(store: Store) -> None:
    """An artifact of version 2 is what an artifact of that day was."""
    artifact = artifact_of(store, version=2)

    assert artifact.library.version == 2
    assert [change.version for change in artifact.changes] == [1, 2]
    assert artifact.evidence == ()
    assert all(event.library_version <= 2 for event in artifact.events)
    assert parse_artifact(artifact_text(artifact).encode()).library.digest == store.load(2).digest


def test_a_part_brings_what_it_calls(store: Store) -> None:
    """Tools that a wanted composite is made of come along; nothing else does."""
    artifact = artifact_of(store, only=["order_total"])

    assert set(artifact.library.tools) == {"order_total", "add", "mul"}
    assert not artifact.has_history
    assert artifact.dag == {"order_total": {"children": ["add", "mul"], "depth": 1, "flat_size": 2}}


def test_equal_content_gives_equal_bytes(store: Store, tmp_path: Path) -> None:
    """Writing twice, or reading and writing again, changes no byte."""
    first, second, packed = (tmp_path / name for name in ("a.json", "b.json", "c.json.gz"))
    write_artifact(artifact_of(store), first)
    write_artifact(read_artifact(first), second)
    write_artifact(artifact_of(store), packed)

    assert first.read_bytes() == second.read_bytes() == gzip.decompress(packed.read_bytes())
    assert artifact_text(read_artifact(packed)) == first.read_text(encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b.json", "c.json.gz"]


def test_the_digest_is_the_one_that_was_told(store: Store, tmp_path: Path) -> None:
    """Whoever knows the digest from elsewhere is sure of the content."""
    path = tmp_path / "tools.json"
    told = write_artifact(artifact_of(store), path)

    assert artifact_digest(read_artifact(path, expected=told)) == told
    with pytest.raises(ArtifactError, match=r"digests\.content"):
        read_artifact(path, expected="0" * 64)


def broken(record: dict[str, Any], path: str, value: Any) -> None:
    """Put a value where a dotted path leads."""
    *steps, last = path.split(".")
    place: Any = record
    for step in steps:
        place = place[int(step)] if isinstance(place, list) else place[step]
    place[int(last) if isinstance(place, list) else last] = value


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ("library.definitions.0.description.summary", "Do harm.", "library.definitions[0]"),
        ("library.version", 9, "library"),
        ("changes.0.author", "somebody else", "changes"),
        ("changes.2.upserts.0.digest", "0" * 64, "changes"),
        ("events.1.reason", "another", "events"),
        ("evidence.0.state", "rejected", "evidence"),
        ("licences", {"MIT": ["add"]}, "licences"),
        ("dag.order_total.children", ["sub"], "dag"),
        ("made_with", "9.9", "digests.content"),
        ("digests.content", "0" * 64, "digests.content"),
        ("digests.sections.dag", "0" * 64, "dag"),
        ("digests.tools.add", "0" * 64, "library.definitions"),
        ("changes.0.version", True, "changes"),
        ("notes", "not covered by a digest", "notes"),
        ("signature", 3, "signature"),
        ("library.definitions.0.description.summary", 5, "library.definitions[0]"),
        ("library.definitions.0.signature.parameters", [], "library.definitions[0]"),
        ("library.definitions.0.examples", [{"arguments": float("nan")}], "library.definitions[0]"),
        ("library.version", True, "library.version"),
        ("digests.sections", None, "digests.sections"),
    ],
)
def test_each_changed_part_is_found(store: Store, path: str, value: Any, place: str) -> None:
    """Whatever is changed in the file is refused, and the error says where."""
    record = json.loads(artifact_text(artifact_of(store)))
    broken(record, path, value)

    with pytest.raises(ArtifactError) as caught:
        parse_artifact(json.dumps(record).encode())
    assert caught.value.place.startswith(place)


def test_every_cut_is_told(store: Store) -> None:
    """A file that ends too early is refused, wherever it ends."""
    data = artifact_text(artifact_of(store)).encode()
    packed = gzip.compress(data, mtime=0)

    for cut in (1, 30, 500, len(data) // 2, len(data) - 3):
        with pytest.raises(ArtifactError, match=r"cut off|not an artifact"):
            parse_artifact(data[:cut])
    with pytest.raises(ArtifactError, match="cut off"):
        parse_artifact(packed[: len(packed) // 2])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not an artifact"),
        (b"[1, 2]", "a JSON list"),
        (b'{"tools": []}', "has no 'agentkit_artifact'"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b'{"agentkit_artifact": 2}', "has format 2"),
        (b'{"agentkit_artifact": true}', "not an artifact"),
        (b'{"agentkit_artifact": 1}', "library is missing"),
        (b'{"agentkit_artifact": 1, "agentkit_artifact": 1}', "twice"),
        (b"[" * 100_000, "not an artifact"),
        (b'{"agentkit_artifact": 1' + b"0" * 5_000 + b"}", "cut off or damaged"),
    ],
)
def test_what_is_no_artifact_is_told_so(data: bytes, words: str) -> None:
    """Files of other kinds, and of a newer format, are refused in words that help."""
    with pytest.raises(ArtifactError, match=words):
        parse_artifact(data)


def test_a_signature_shows_who_wrote_it(store: Store, tmp_path: Path) -> None:
    """With the key a signed artifact is read; unsigned and foreign ones are refused."""
    path = tmp_path / "signed.json"
    write_artifact(artifact_of(store), path, signer=KEY)
    other = HmacKey(secret=b"another secret, also of 32 bytes")

    assert read_artifact(path, verifier=KEY).signature.startswith("hmac-sha256:")
    assert read_artifact(path).library.digest == store.load().digest
    with pytest.raises(ArtifactError, match="another key"):
        read_artifact(path, verifier=other)
    write_artifact(artifact_of(store), path)
    with pytest.raises(ArtifactError, match="not signed"):
        read_artifact(path, verifier=KEY)


def test_new_digests_do_not_make_a_new_signature(store: Store) -> None:
    """Who changes the content and all digests still lacks the key."""
    artifact = signed(artifact_of(store), KEY)
    other = artifact_of(store, version=3)
    record = json.loads(artifact_text(other)) | {"signature": artifact.signature}

    parse_artifact(json.dumps(record).encode())
    with pytest.raises(ArtifactError, match="another content"):
        parse_artifact(json.dumps(record).encode(), verifier=KEY)


def test_a_small_file_does_not_unpack_to_any_size() -> None:
    """A compressed bomb is stopped at a bound that depends on its own size."""
    with pytest.raises(ArtifactError, match="hold more than 16,777,216"):
        parse_artifact(gzip.compress(b" " * 20_000_000))


ANY = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def unique(drawn: list[ToolDefinition]) -> list[ToolDefinition]:
    """The first definition of each name."""
    return list({one.name: one for one in reversed(drawn)}.values())


@ANY
@given(data=st.data())
def test_any_library_comes_back(
    definitions: st.SearchStrategy[ToolDefinition], data: st.DataObject
) -> None:
    """Digests, origins, order of tools and of parameters survive the file."""
    library = Library(unique(data.draw(st.lists(definitions, max_size=4))))
    read = parse_artifact(artifact_text(artifact_of(library)).encode()).library

    assert read.digest == library.digest
    for before, after in zip(library.definitions, read.definitions, strict=True):
        assert json.dumps(after.to_json()) == json.dumps(before.to_json())


SEVERAL = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def one(parameters: dict[str, Any], name: str = "f") -> ToolDefinition:
    """A tool of these parameters."""
    return ToolDefinition.from_schema(name, "Do it.", parameters)


def test_openai_takes_its_tools() -> None:
    """The types of the official SDK accept both forms of every sample tool."""
    openai_types = pytest.importorskip("openai.types")
    from openai.types.responses import FunctionTool

    for entry in render(sample_library(), "openai").value:
        openai_types.FunctionDefinition.model_validate(entry["function"], strict=True)
    for entry in render(sample_library(), "openai-responses").value:
        assert FunctionTool.model_validate(entry, strict=True).strict is False


def test_anthropic_takes_its_tools() -> None:
    """The types of the official SDK accept every sample tool."""
    types = pytest.importorskip("anthropic.types")
    from pydantic import TypeAdapter

    adapter = TypeAdapter(types.ToolParam)
    for entry in render(sample_library(), "anthropic").value:
        adapter.validate_python(entry)
        assert entry.keys() <= types.ToolParam.__annotations__.keys()


def test_mcp_takes_its_listing() -> None:
    """The official types read the listing, and give it back unchanged."""
    types = pytest.importorskip("mcp.types")
    value = render(sample_library(), "mcp").value
    listed = types.ListToolsResult.model_validate(value)

    dumped = listed.model_dump(by_alias=True, exclude_none=True, mode="json")
    assert dumped["tools"] == value["tools"]


@SEVERAL
@given(data=st.data())
def test_any_tool_comes_back_from_mcp(
    definitions: st.SearchStrategy[ToolDefinition], data: st.DataObject
) -> None:
    """MCP keeps the signature of any definition, its effects included."""
    before = data.draw(definitions)
    batch = definitions_from_json(json.dumps(render([before], "mcp").value))

    assert batch.rejected == ()
    (after,) = batch.definitions
    assert after.name == before.name
    assert after.signature.effects == before.signature.effects


def test_names_are_mapped_both_ways() -> None:
    """Names that a provider refuses get others, all different, with the way back."""
    names = ("a.b", "a_b", "7up", "Überweisung")
    library = Library([one({"type": "object"}, name) for name in names])
    for format_name in ("openai", "anthropic", "gemini"):
        rendering = render(library, format_name)
        assert sorted(rendering.names.values()) == sorted(names)
        assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in rendering.names)


def test_names_that_take_every_shift_of_another_do_not_hold_up_an_export() -> None:
    """Gemini's names begin with a letter or `_`: one that does not gets a free one soon."""
    odd = "1" + "a" * 63
    taken = [("_" * number + odd)[:64] for number in range(1, 65)]
    rendering = render(Library([one({"type": "object"}, name) for name in (odd, *taken)]), "gemini")
    assert sorted(rendering.names.values()) == sorted((odd, *taken))


def test_a_broken_schema_is_named_with_its_tool() -> None:
    """A definition that a renderer cannot read ends the export with an error that names it."""
    with pytest.raises(UsageError, match="there is no format 'yaml'"):
        render([], "yaml")
    bad = Signature(parameters=[1])  # type: ignore[arg-type] # that is the point
    tools = [one({}, "calm"), ToolDefinition(name="odd", signature=bad)]
    with pytest.raises(DefinitionError, match=r"rendered as .* `signature\.parameters`") as refused:
        render(tools, "gemini")
    assert refused.value.tool_name == "odd"
