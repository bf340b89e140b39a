"""What goes into an artifact comes out of it: for any definitions and programs."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings, strategies as st
from support.random_children import ChildrenInUse
from support.random_programs import random_program

from agentkit import Library, ToolDefinition, open_store
from agentkit.composites.codec import program_digest, program_from_json, program_to_json
from agentkit.composites.parser import parse
from agentkit.interop.export import ArtifactStore, artifact_of, artifact_text, parse_artifact
from agentkit.library import LibraryChange

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


@ANY
@given(data=st.data())
def test_any_history_comes_back(
    definitions: st.SearchStrategy[ToolDefinition], data: st.DataObject
) -> None:
    """Each version of a store that grew, changed and shrank is in its artifact."""
    store = open_store("memory:")
    for number in range(1, data.draw(st.integers(1, 4)) + 1):
        held = list(store.load().tools)
        upserts = unique(data.draw(st.lists(definitions, min_size=1, max_size=2)))
        names = {one.name for one in upserts}
        gone = [name for name in held if name not in names and data.draw(st.booleans())]
        change = LibraryChange(
            proposal_id=f"p{number}", upserts=tuple(upserts), removals=tuple(gone), author="ada"
        )
        store.commit(change, expected_version=number - 1)
    read = ArtifactStore(parse_artifact(artifact_text(artifact_of(store)).encode()))

    assert read.versions() == tuple(store.versions())
    for version in store.versions():
        assert read.load(version).digest == store.load(version).digest
    for name in store.load().tools:
        assert read.history(name) == tuple(store.history(name))


def test_any_program_comes_back() -> None:
    """Programs of random composites, and the DAG that they make, are the same afterwards."""
    children = ChildrenInUse()
    parsed = [parse(random_program(seed).source, children.tools) for seed in range(12)]
    composites = [
        ToolDefinition(name=one.name, body=program_to_json(one.program)) for one in parsed
    ]
    library = Library([*children.by_name.values(), *composites])
    artifact = artifact_of(library)
    read = parse_artifact(artifact_text(artifact).encode())

    assert read.library.digest == library.digest
    assert read.dag == artifact.dag
    assert read.library.dag.depths == library.dag.depths
    for one in parsed:
        body = read.library[one.name].definition.body
        assert body is not None
        assert program_digest(program_from_json(body)) == program_digest(one.program)
