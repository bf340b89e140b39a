"""The extra ``graph``: the DAG of a composite and its child is drawn as PNG; the composite runs."""

import tempfile
from pathlib import Path

from shared import caller, check, square

from agentkit import Agent, open_store
from agentkit.cli.main import main
from agentkit.evolution import ToolManager
from agentkit.messages import ToolCall

FOURTH_POWER = '''
@composite(examples=[{"arguments": {"n": 2}, "result": 16}])
def fourth_power(n: int) -> int:
    """The fourth power of n."""
    return square(square(n))
'''
CALL = ToolCall(call_id="c1", name="fourth_power", arguments={"n": 3})

with tempfile.TemporaryDirectory() as folder:
    url, picture = f"sqlite:///{folder}/library.db", Path(folder, "tools.png")
    store = open_store(url)
    manager = ToolManager(store, tools=[square])
    manager.register([square], reason="the first tool")
    manager.insert(FOURTH_POWER, reason="two steps in many orders")
    result = Agent(caller(CALL), library=manager.library).run_sync("3 to the fourth?")
    store.close()
    main(["tools", "graph", "--store", url, "--output", str(picture)], standalone_mode=False)
    assert picture.read_bytes().startswith(b"\x89PNG"), picture.read_bytes()[:8]
check(result, 81, "drawn and called", "pillow")
