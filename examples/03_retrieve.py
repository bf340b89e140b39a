"""Stage 3, retrieval: which of many tools a model gets to see.

Run it: python examples/03_retrieve.py
"""

from __future__ import annotations

import asyncio

from agentkit import Library
from agentkit.retrieval.cascade import default_retriever
from agentkit.testing import sample_library


async def main() -> None:
    """Rank a small library for one question and show each stage."""
    library: Library = sample_library()
    found = await default_retriever().retrieve("how warm will it be in Lyon tomorrow?", library)
    for hit in found.hits[:3]:
        print(f"{hit.score:6.2f}  {hit.definition.name}  {hit.reason}")
    for stage in found.stages:
        print(f"stage {stage.stage}: {stage.survivors} tools left")
    print("offered in full:", [definition.name for definition in found.offered])


asyncio.run(main())
