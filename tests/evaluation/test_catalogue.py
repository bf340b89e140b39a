"""Putting a benchmark's catalogue into a library."""

from dataclasses import replace

import pytest

from agentkit.errors import UsageError
from agentkit.evaluation.task import import_catalogue
from agentkit.library import LibraryChange
from agentkit.library.opening import open_store
from agentkit.tools.definition import ToolDefinition


def test_the_catalogue_is_one_version(sample):
    """All definitions arrive in one version, in the benchmark's order."""
    library = import_catalogue(open_store("memory:"), sample)
    assert library.version == 1
    assert library.definitions == sample.definitions


def test_a_second_import_changes_nothing(sample):
    """Importing what is there already makes no new version."""
    store = open_store("memory:")
    import_catalogue(store, sample)
    assert import_catalogue(store, sample).version == 1


def test_an_older_release_is_replaced(sample):
    """A definition that the same source changed gets a new revision."""
    store = open_store("memory:")
    import_catalogue(store, sample)
    first = sample.definitions[0]
    words = replace(first.description, summary="Changed upstream.")
    changed = replace(first, description=words)
    newer = replace(sample, definitions=(changed, *sample.definitions[1:]))
    library = import_catalogue(store, newer)
    assert library.version == 2
    assert library[first.name].definition.description.summary == "Changed upstream."


def test_a_tool_from_elsewhere_is_never_overwritten(sample):
    """A tool of the user's own under the same name stops the import with an error."""
    store = open_store("memory:")
    own = ToolDefinition(name="set_lamp")
    store.commit(LibraryChange(proposal_id="own", upserts=(own,)), expected_version=0)
    with pytest.raises(UsageError, match="already holds another tool named 'set_lamp'"):
        import_catalogue(store, sample)
    assert store.load().version == 1
