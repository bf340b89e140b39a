"""A change of many tools is read once, not once for each of its tools."""

from __future__ import annotations

import subprocess
import sys

import pytest

COUNT_READS = """
import sys

reads = []
sys.addaudithook(lambda event, told: reads.append(told[0]) if event == "open" else None)

from agentkit.library.checking import check_store
from agentkit.library.directory import DirectoryStore

store = DirectoryStore(sys.argv[1])
for tool in store.load() if sys.argv[2] == "history" else ():
    assert len(store.history(tool.name)) == 1
if sys.argv[2] == "check":
    assert check_store(store).is_sound
print(sum(str(one).endswith("00000002.json") for one in reads))
"""


@pytest.mark.parametrize("asked", ["history", "check", "index"])
def test_a_change_of_many_tools_is_read_a_few_times(workshop, make_tool, asked):
    """Histories, a check and a lost index need it; a read for each tool would take minutes."""
    workshop.put(*(make_tool(f"tool_{number}", "One of many.") for number in range(60)))
    workshop.put(make_tool("late"), remove=("ping", "pong"))
    if asked == "index":
        (workshop.path / "index.json").unlink()
    command = [sys.executable, "-c", COUNT_READS, str(workshop.path), asked]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert 1 <= int(done.stdout) <= 6
