"""Stores as a whole: ``store copy``, what a copy holds differently, damage, and giving back room."""

import json
import sqlite3
from contextlib import closing

import pytest
from support.histories import HistoryStep, all_told, write_history

from agentkit import open_store

STEPS = [
    HistoryStep(wishes={"a": ("one", ""), "b": ("two", "")}, events=2, episodes=3),
    HistoryStep(wishes={"a": ("three", "")}, events=1),
]


@pytest.fixture
def filled(store_url):
    """The store of the test, with two versions, three events and three episodes."""
    with closing(open_store(store_url)) as store:
        write_history(store, STEPS)
    return store_url


@pytest.fixture
def target(tmp_path):
    """The URL of a store that does not exist yet."""
    return f"sqlite:///{tmp_path / 'target.db'}"


def told(url):
    """All that a store holds."""
    with closing(open_store(url)) as store:
        return all_told(store)


def more(url, name):
    """Write one more version, without events."""
    with closing(open_store(url)) as store:
        write_history(store, [HistoryStep(wishes={"c": ("", "")})], name=name)


def test_a_copy_says_what_it_copied(invoke, filled, target):
    """What was copied and compared stands on stdout; nothing is said of quick steps."""
    ran = invoke("store", "copy", filled, target)
    assert ran.exit_code == 0
    assert ran.stdout.splitlines() == [
        "copied    2 versions, 3 events, 3 episodes",
        "the same  2 versions, 3 events, 3 episodes",
    ]
    assert ran.stderr == ""
    assert told(target) == told(filled)


def test_the_first_differences_are_named(invoke, filled, target):
    """Of each part the first difference is told, with status 1."""
    invoke("store", "copy", filled, target)
    more(filled, "ours")
    more(target, "theirs")
    ran = invoke("store", "copy", "--dry-run", filled, target)
    assert ran.exit_code == 1
    assert "versions version 3: proposal id 'ours 0' or 'theirs 0'" in ran.stderr
    found = json.loads(invoke("store", "copy", "--dry-run", filled, target, "--json").stdout)
    assert not found["is_equal"]
    assert [one["part"] for one in found["differences"]] == ["versions"]


def test_damage_is_told_in_a_table(invoke, filled, tmp_path):
    """Each fault has a place and words, in the table and as JSON; the status is 1."""
    with closing(sqlite3.connect(tmp_path / "library.db")) as raw, raw:
        raw.execute("UPDATE definitions SET body = replace(body, 'two', 'evil')")
        raw.execute("UPDATE episodes SET body = '{' WHERE sequence = 2")
    ran = invoke("check", "--store", filled)
    assert ran.exit_code == 1
    assert "changed where it lies" in " ".join(ran.stdout.split())
    assert "episodes: reading ends here" in " ".join(ran.stdout.split())
    found = json.loads(invoke("check", "--store", filled, "--json").stdout)
    assert f"\n{len(found['faults'])} faults\n" in ran.stdout
    assert {one["code"] for one in found["faults"]} == {"damage"}
    assert "agentkit store copy BACKUP NEW" in ran.stderr
