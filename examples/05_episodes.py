"""Stage 5, episodes: the record of a run, in a store and as JSON lines.

Run it: python examples/05_episodes.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from agentkit import Agent, open_store
from agentkit.episodes.files import export_episodes, read_episodes
from agentkit.library.store import EpisodeFilter
from agentkit.testing import ScriptedModel

with tempfile.TemporaryDirectory() as folder:
    store = open_store(f"sqlite:///{folder}/agent.db")
    agent = Agent(ScriptedModel(["Hello Ada.", "You are Ada."]), store=store)
    agent.run_sync("I am Ada.", session_id="chat")
    agent.run_sync("Who am I?", session_id="chat", metadata={"channel": "web"})

    file = Path(folder) / "episodes.jsonl"
    export_episodes(file, store.select(EpisodeFilter(session_id="chat", oldest_first=True)))
    store.close()
    for episode in read_episodes(file):
        print(episode.request, "->", episode.output, dict(episode.metadata))
