"""Putting a benchmark's catalogue into a library, once."""

from __future__ import annotations

import uuid

from agentkit.errors import UsageError
from agentkit.evaluation.task import Benchmark
from agentkit.library import Library, LibraryChange, ToolStore
from agentkit.tools.definition import ToolDefinition


def import_catalogue(store: ToolStore, benchmark: Benchmark) -> Library:
    """Commit the benchmark's definitions that the store does not hold yet.

    Definitions of an earlier release of the same source are replaced; other tools in the library
    are left alone. When everything is there already, no new version is made.

    Returns:
        The newest library.

    Raises:
        UsageError: The library holds a tool of the same name from elsewhere.
        StaleVersionError: Another writer was faster.
    """
    library = store.load()
    upserts = tuple(d for d in benchmark.definitions if not _is_held(d, library))
    if not upserts:
        return library
    change = LibraryChange(
        proposal_id=f"import-{uuid.uuid4().hex}",
        upserts=upserts,
        author="agentkit",
        reason=f"import the catalogue of {benchmark.name}",
    )
    store.commit(change, expected_version=library.version)
    return store.load()


def _is_held(definition: ToolDefinition, library: Library) -> bool:
    known = library.get(definition.name)
    if known is None:
        return False
    if known.definition.digest == definition.digest:
        return True
    source, other = definition.origin.reference, known.definition.origin.reference
    if source.partition(" ")[0] != other.partition(" ")[0]:
        raise UsageError(
            f"the library already holds another tool named {definition.name!r} "
            f"(from {other or known.definition.origin.kind}); give the benchmark a store of its own"
        )
    return False
