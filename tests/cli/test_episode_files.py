"""``agentkit episodes export`` and ``prune``, and ``agentkit import`` of episodes: what is kept of the past."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from agentkit import Episode
from agentkit.episodes.files import export_episodes, import_episodes
from agentkit.library import EpisodeFilter
from agentkit.library.opening import open_store

NOW = datetime.now(UTC)


@pytest.fixture(autouse=True)
def kept(store_url):
    """Five episodes, each a day older than the next one."""
    episodes = [
        Episode(
            episode_id=f"e{i}",
            request=f"I am ann{i}@example.org",
            started_at=(NOW - timedelta(days=5 - i)).isoformat(),
        )
        for i in range(5)
    ]
    store = open_store(store_url)
    for episode in episodes:
        store.append(episode)
    store.close()
    return episodes


@pytest.mark.parametrize("name", ["e.jsonl", "e.jsonl.gz", "noform"])
def test_export_writes_what_the_name_says(invoke, tmp_path, kept, name):
    """The form follows the name of the file, and reading it gives equal episodes in order."""
    result = invoke("episodes", "export", "--output", name)
    assert result.exit_code == 0, result.stderr
    assert "5 episodes written" in result.stderr
    assert list(import_episodes(tmp_path / name, own=True)) == kept


def test_export_without_personal_data(invoke):
    """With --redact addresses are placeholders."""
    result = invoke("episodes", "export", "--redact")
    assert {json.loads(line)["request"] for line in result.stdout.splitlines()} == {"I am <email>"}


def test_import_keeps_what_was_exported(invoke, tmp_path, kept):
    """Files go into another store; a second time nothing is added, and broken lines are told."""
    assert invoke("episodes", "export", "--output", "e.jsonl").exit_code == 0
    assert invoke("episodes", "export", "--output", "E.JSONL.GZ").exit_code == 0
    with (tmp_path / "e.jsonl").open("a") as file:
        file.write("half an epis")
    other = f"sqlite:///{tmp_path / 'other.db'}"
    for name in ("e.jsonl", "E.JSONL.GZ"):
        result = invoke("import", name, "--store", other)
        assert result.exit_code == 0, result.stderr
        assert f"{name}: 5 episodes read" in result.stderr
        assert (f"{name}, line 6" in result.stderr) == (name == "e.jsonl")
    assert (tmp_path / "E.JSONL.GZ").read_bytes().startswith(b"\x1f\x8b")
    labels = {"imported": "e.jsonl"}
    with closing(open_store(other)) as store:
        assert list(store.select()) == [replace(one, metadata=labels) for one in kept[::-1]]
    assert invoke("import", "--own", "e.jsonl", "--store", f"{other}2").exit_code == 0
    with closing(open_store(f"{other}2")) as store:
        assert list(store.select()) == kept[::-1]


def test_no_file_says_that_it_is_our_own(invoke, tmp_path, kept):
    """The label of an import is ours: what a file says in its place is overwritten, and --own adds none."""
    said = [replace(kept[0], metadata={"imported": ""}), kept[1]]
    export_episodes(tmp_path / "e.jsonl", said)
    for word, labels in (("--json", ["e.jsonl", "e.jsonl"]), ("--own", ["", None])):
        other = f"sqlite:///{tmp_path / word}.db"
        assert invoke("import", "e.jsonl", word, "--store", other).exit_code == 0
        with closing(open_store(other)) as store:
            found = store.select(EpisodeFilter(oldest_first=True))
            assert [one.metadata.get("imported") for one in found] == labels


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["e.jsonl", "--dry-run"], "--dry-run is for artifacts, and e.jsonl holds episodes"),
        (["e.jsonl", "--on-conflict", "skip"], "--on-conflict is for artifacts"),
        (["tools.json", "--own"], "--own is for episodes"),
        (["tools.json", "e.jsonl"], "give one artifact at a time"),
    ],
)
def test_artifacts_and_episodes_do_not_mix(invoke, kept, arguments, said):
    """Options of artifacts mean nothing for episodes, and both do not come in one command."""
    assert invoke("episodes", "export", "--output", "e.jsonl").exit_code == 0
    assert invoke("tools", "import", "-", typed='[{"name": "a"}]').exit_code == 0
    assert invoke("export", "--format", "artifact", "--output", "tools.json").exit_code == 0
    result = invoke("import", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_prune_deletes_the_oldest(invoke, as_json):
    """It tells what went, and what the store holds now."""
    gone = as_json("episodes", "prune", "--max-age", "3d")
    assert (gone["gone"]["count"], gone["kept"]["count"]) == (3, 2)
    result = invoke("episodes", "prune", "--max-count", "1")
    assert "1 episode (" in result.stderr
    assert "deleted; the store holds 1 episode (" in result.stderr
    assert as_json("episodes", "prune", "--max-count", "0")["kept"]["count"] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give --max-age or --max-count"),
        (("--max-age", "soon"), "write 30d"),
        (("--max-age", "9999999999w"), "write 30d"),
        (("--max-count", "-1"), "-1"),
    ],
)
def test_prune_says_what_is_wrong(invoke, arguments, said):
    """Without a bound, or with one that is none, nothing is deleted."""
    result = invoke("episodes", "prune", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
