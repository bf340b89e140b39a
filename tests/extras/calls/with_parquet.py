"""The extra ``parquet``: a table of episodes that an earlier release exported is read."""

from pathlib import Path

from shared import SQUARE_12, caller, check, square

from agentkit import Agent
from agentkit.episodes.files import import_episodes

TABLE = Path(__file__).parents[2] / "formats/written_2026_11/episodes.parquet"

assert list(import_episodes(TABLE))
result = Agent(caller(SQUARE_12), tools=[square]).run_sync("What is 12 squared?")
check(result, 144, "read and called", "pyarrow")
