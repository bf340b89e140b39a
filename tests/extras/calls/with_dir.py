"""The extra ``dir``: a tool is kept as a YAML file, read back, and called."""

import tempfile
from pathlib import Path

from shared import SQUARE_12, caller, check, square

from agentkit import Agent, open_store
from agentkit.library import LibraryChange

with tempfile.TemporaryDirectory() as folder:
    store = open_store(f"dir:{folder}/library")
    change = LibraryChange(proposal_id="first", upserts=(square.definition,))
    store.commit(change, expected_version=0)
    (path,) = Path(folder, "library", "tools").iterdir()
    assert path.suffix == ".yaml", path
    result = Agent(caller(SQUARE_12), tools=[square], store=store).run_sync("What is 12 squared?")
    assert result.episode.library_version == 1
    store.close()
check(result, 144, f"called from {path.name}", "pyyaml")
