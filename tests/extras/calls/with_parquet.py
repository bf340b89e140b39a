"""The extra ``parquet``: the episode of a tool call goes to a table and comes back equal."""

import tempfile
from pathlib import Path

from shared import SQUARE_12, caller, check, square

from agentkit import Agent
from agentkit.episodes.files import export_episodes, import_episodes

result = Agent(caller(SQUARE_12), tools=[square]).run_sync("What is 12 squared?")
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "episodes.parquet"
    assert export_episodes(path, [result.episode]) == 1
    assert list(import_episodes(path)) == [result.episode]
check(result, 144, "called and exported", "pyarrow")
