"""The order of episodes while several programs keep some."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from time import sleep

import psycopg

from agentkit import Episode, open_store
from agentkit.library import EpisodeFilter
from agentkit.library.copying import copy_store
from agentkit_postgres import PostgresStore

Raw = Callable[[str], "psycopg.Connection[tuple[object, ...]]"]

BLOCK = """
INSERT INTO episodes (episode_id, stop_reason, tools, labels, began, bytes, body)
VALUES ('blocked', 'finished', '{}', '{}', now(), 0, '')
"""
BLOCKED = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%keep_epi%'"


def test_what_is_kept_later_comes_behind_what_was_read(store_url: str, raw: Raw) -> None:
    """A batch that takes long is not passed by: a copy has it, and goes on where it ended."""
    oldest_first = EpisodeFilter(oldest_first=True)
    slow = [Episode(episode_id=name, request="?") for name in ("slow", "blocked")]
    with (
        closing(PostgresStore(store_url)) as store,
        closing(open_store("memory:")) as target,
        ThreadPoolExecutor() as threads,
    ):
        in_the_way, looking = raw(store_url), raw(store_url)
        with in_the_way.transaction(force_rollback=True):
            in_the_way.execute(BLOCK.encode())
            keeping = threads.submit(store.append_many, slow)
            while not looking.execute(BLOCKED.encode()).rowcount:
                sleep(0.01)
            store.append(Episode(episode_id="quick", request="?"))
            assert [one.episode_id for one in store.select()] == ["quick"]
            copying = threads.submit(partial(copy_store, store, target))
            sleep(0.1)  # long enough for a copy that does not wait
        keeping.result()
        copying.result()
        store.append(Episode(episode_id="later", request="?"))
        assert copy_store(store, target).copied.episodes == 1
        ids = [[one.episode_id for one in kept.select(oldest_first)] for kept in (store, target)]
    assert ids == [["slow", "blocked", "quick", "later"]] * 2
