"""What holds people's words is made for its owner alone; what was shared on purpose stays shared."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from agentkit import Episode, ToolDefinition, open_store
from agentkit.cli.main import main
from agentkit.episodes.files import export_episodes, write_episodes
from agentkit.library import LibraryChange

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX")

EPISODE = Episode(episode_id="e1", request="My card is lost, I am Ada Lovelace.")
CHANGE = LibraryChange(proposal_id="first", upserts=(ToolDefinition(name="ping"),))


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    """Most systems let everybody read what a program makes."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    """The permissions of a file."""
    return stat.S_IMODE(path.stat().st_mode)


def test_a_sqlite_file_and_its_companions(tmp_path: Path) -> None:
    """The file, its log and its index of the log are the owner's."""
    store = open_store(f"sqlite:///{tmp_path / 'a.db'}")
    store.append(EPISODE)
    found = {path.name: mode(path) for path in tmp_path.iterdir()}
    assert {"a.db", "a.db-wal"} <= found.keys()
    assert set(found.values()) == {0o600}
    store.close()


def test_a_mode_that_somebody_chose_stays(tmp_path: Path) -> None:
    """A file that a group shares goes on being shared, its companions as well."""
    path = tmp_path / "a.db"
    open_store(f"sqlite:///{path}").close()
    path.chmod(0o660)
    store = open_store(f"sqlite:///{path}")
    store.append(EPISODE)
    assert {mode(one) for one in tmp_path.iterdir()} == {0o660}
    store.close()


def test_a_stricter_umask_is_respected(tmp_path: Path) -> None:
    """Nothing is granted that the user's umask takes away."""
    os.umask(0o277)
    write_episodes(tmp_path / "e.jsonl", [EPISODE])
    assert mode(tmp_path / "e.jsonl") == 0o400


def test_files_of_episodes(tmp_path: Path) -> None:
    """JSON lines and compressed ones are the owner's."""
    write_episodes(tmp_path / "appended.jsonl", [EPISODE])
    for name in ("e.jsonl", "e.jsonl.gz"):
        export_episodes(tmp_path / name, [EPISODE])
    files = [path for path in tmp_path.iterdir() if path.is_file()]
    assert len(files) == 3
    assert {mode(path) for path in files} == {0o600}
    (tmp_path / "e.jsonl").chmod(0o640)
    export_episodes(tmp_path / "e.jsonl", [EPISODE])
    assert mode(tmp_path / "e.jsonl") == 0o640


def test_a_directory_store_shares_definitions_alone(tmp_path: Path) -> None:
    """Files for git have the usual modes; local/, where episodes lie, is the owner's."""
    store = open_store(f"dir:{tmp_path / 'library'}")
    store.commit(CHANGE, expected_version=0)
    store.append(EPISODE)
    folder = tmp_path / "library"
    shared = [folder / "log.jsonl", folder / "tools" / "ping.yaml"]
    assert {mode(path) for path in shared} == {0o644}
    assert mode(folder / "local") == 0o700
    assert mode(folder / "local" / "episodes.db") == 0o600
    store.close()


def test_a_directory_that_a_group_writes_to_stays_shared_with_it(tmp_path: Path) -> None:
    """Writers of one group need the lock in local/; others get nothing."""
    folder = tmp_path / "library"
    folder.mkdir()
    folder.chmod(0o2775)
    store = open_store(f"dir:{folder}")
    os.umask(0o002)
    store.commit(CHANGE, expected_version=0)
    assert mode(folder / "local") & 0o777 == 0o770
    store.close()


def test_the_folder_of_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder .agentkit is the owner's, and so is the store in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools.json").write_text('[{"name": "ping", "description": "Ping a host."}]')
    result = CliRunner().invoke(main, ["tools", "import", "tools.json"])
    assert result.exit_code == 0, result.output
    made = [path for path in tmp_path.rglob("*.db*") if path.is_file()]
    assert made
    assert {mode(path) for path in made} == {0o600}
    assert mode(made[0].parent) == 0o700 or made[0].parent == tmp_path


@pytest.mark.parametrize("name", ["", "library.db", "library.db-wal", "library.db.evolving"])
def test_a_link_in_the_folder_of_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A link at or in .agentkit, as a checkout may hold, is refused and nothing is made behind it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "victim").mkdir()
    link = tmp_path / ".agentkit" / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path / "victim" / "file" if name else tmp_path / "victim")
    (tmp_path / "tools.json").write_text('[{"name": "ping", "description": "Ping a host."}]')
    store = "sqlite:///.agentkit/library.db"
    result = CliRunner().invoke(main, ["tools", "import", "tools.json", "--store", store])
    assert result.exit_code != 0
    assert "is a link" in result.output
    assert list((tmp_path / "victim").iterdir()) == []
