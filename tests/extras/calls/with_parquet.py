"""The extra ``parquet``: a table of episodes that an earlier release exported is read."""

import tempfile
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet
from shared import SQUARE_12, caller, check, square

from agentkit import Agent
from agentkit.episodes.files import encode_episode, import_episodes

result = Agent(caller(SQUARE_12), tools=[square]).run_sync("What is 12 squared?")
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "episodes.parquet"
    parquet.write_table(pa.table({"record": [encode_episode(result.episode)]}), path)
    assert list(import_episodes(path)) == [result.episode]
check(result, 144, "called and read", "pyarrow")
