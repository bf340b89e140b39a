"""Damage that somebody did to the tables is found."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest

from agentkit import Episode, ToolDefinition
from agentkit.episodes import Turn
from agentkit.library import LibraryChange
from agentkit.library.checking import check_store
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.testing.conformance.writer import batch, told
from agentkit_postgres import PostgresStore

Raw = Callable[[str], "psycopg.Connection[tuple[object, ...]]"]

DAMAGE = {
    "UPDATE definitions SET body = replace(body, 'text 1', 'text 7')": "versions",
    "UPDATE definitions SET body = '{' WHERE name = 'p_3'": "versions",
    "DELETE FROM revisions WHERE version = 2": "version 2",
    "DELETE FROM revisions WHERE version = 3; DELETE FROM versions WHERE version = 3": "version 4",
    "ALTER TABLE events DISABLE TRIGGER events_stay": "events",
    "ALTER TABLE events DISABLE TRIGGER events_stay; DELETE FROM events WHERE sequence = 1; "
    "ALTER TABLE events ENABLE TRIGGER events_stay": "event 1",
    "ALTER TABLE events DISABLE TRIGGER events_stay; UPDATE events SET body = "
    "replace(body, 'p-0', 'p-9'); ALTER TABLE events ENABLE TRIGGER events_stay": "event",
    "UPDATE episodes SET body = '{'": "episodes",
    "UPDATE agentkit_migrations SET name = 'm0002_other' WHERE position = 2": "agentkit_migrations",
}


@pytest.mark.parametrize("statement", DAMAGE)
def test_damage_is_found_where_it_is(store_url: str, raw: Raw, statement: str) -> None:
    """What was changed by hand is told with its place, and nothing else is changed by looking."""
    with closing(PostgresStore(store_url)) as store:
        last = None
        for number in range(2):
            change = told(batch("p", number), last, version=number + 1)
            store.commit(change, expected_version=number)
            last = change.events[-1]
        gone = ToolDefinition(name="gone")
        store.commit(LibraryChange(proposal_id="g", upserts=(gone,)), expected_version=2)
        store.commit(LibraryChange(proposal_id="h", removals=("gone",)), expected_version=3)
        call = ToolCall(call_id="1", name="p_0")
        turn = Turn(message=AssistantMessage(tool_calls=(call,)))
        store.append(Episode(episode_id="e1", request="hello", turns=(turn,), session_id="s"))
        assert check_store(store).is_sound
        raw(store_url).execute(statement.encode())
        faults = check_store(store).faults
        assert DAMAGE[statement] in " ".join(fault.place for fault in faults)
        assert check_store(store).faults == faults


def test_events_refuse_to_be_changed(store_url: str, raw: Raw) -> None:
    """Nobody changes, deletes or empties the chain by mistake."""
    with closing(PostgresStore(store_url)) as store:
        store.commit(told(batch("p", 0), None, version=1), expected_version=0)
        for statement in ("UPDATE events SET hash = ''", "DELETE FROM events", "TRUNCATE events"):
            with pytest.raises(psycopg.errors.RaiseException, match="only ever appended"):
                raw(store_url).execute(statement.encode())
        assert len(store.events()) == 1
