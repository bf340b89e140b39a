"""Files that only their owner reads, and files that are fetched."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from agentkit import Episode, ToolDefinition, fetch, open_store
from agentkit._waiting import wait_for
from agentkit.cli.main import main
from agentkit.episodes.files import export_episodes
from agentkit.errors import FetchError
from agentkit.fetch import PackageFile, cache_directory, fetch_package_files
from agentkit.library import LibraryChange

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX")

EPISODE = Episode(episode_id="e1", request="My card is lost, I am Ada Lovelace.")
CHANGE = LibraryChange(proposal_id="first", upserts=(ToolDefinition(name="ping"),))


@pytest.fixture(autouse=True)
def usual_umask():
    """Most systems let everybody read what a program makes."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    """The permissions of a file."""
    return stat.S_IMODE(path.stat().st_mode)


def test_a_sqlite_file_and_its_companions(tmp_path):
    """The file, its log and its index of the log are the owner's."""
    store = open_store(f"sqlite:///{tmp_path / 'a.db'}")
    store.append(EPISODE)
    found = {path.name: mode(path) for path in tmp_path.iterdir()}
    assert {"a.db", "a.db-wal"} <= found.keys()
    assert set(found.values()) == {0o600}
    store.close()


def test_a_mode_that_somebody_chose_stays(tmp_path):
    """A file that a group shares goes on being shared, its companions as well."""
    path = tmp_path / "a.db"
    open_store(f"sqlite:///{path}").close()
    path.chmod(0o660)
    store = open_store(f"sqlite:///{path}")
    store.append(EPISODE)
    assert {mode(one) for one in tmp_path.iterdir()} == {0o660}
    store.close()


def test_a_stricter_umask_is_respected(tmp_path):
    """Nothing is granted that the user's umask takes away."""
    os.umask(0o277)
    export_episodes(tmp_path / "e.jsonl", [EPISODE])
    assert mode(tmp_path / "e.jsonl") == 0o400


def test_files_of_episodes(tmp_path):
    """JSON lines and compressed ones are the owner's."""
    for name in ("e.jsonl", "e.jsonl.gz"):
        export_episodes(tmp_path / name, [EPISODE])
    files = [path for path in tmp_path.iterdir() if path.is_file()]
    assert len(files) == 2
    assert {mode(path) for path in files} == {0o600}
    (tmp_path / "e.jsonl").chmod(0o640)
    export_episodes(tmp_path / "e.jsonl", [EPISODE])
    assert mode(tmp_path / "e.jsonl") == 0o640


def test_a_directory_store_shares_definitions_alone(tmp_path):
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


def test_a_directory_that_a_group_writes_to_stays_shared_with_it(tmp_path):
    """Writers of one group need the lock in local/; others get nothing."""
    folder = tmp_path / "library"
    folder.mkdir()
    folder.chmod(0o2775)
    store = open_store(f"dir:{folder}")
    os.umask(0o002)
    store.commit(CHANGE, expected_version=0)
    assert mode(folder / "local") & 0o777 == 0o770
    store.close()


def test_the_folder_of_a_project(tmp_path, monkeypatch):
    """The folder .agentkit is the owner's, and so is the store in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools.json").write_text('[{"name": "ping", "description": "Ping a host."}]')
    result = CliRunner().invoke(main, ["tools", "import", "--yes", "tools.json"])
    assert result.exit_code == 0, result.output
    made = [path for path in tmp_path.rglob("*.db*") if path.is_file()]
    assert made
    assert {mode(path) for path in made} == {0o600}
    assert mode(made[0].parent) == 0o700 or made[0].parent == tmp_path


@pytest.mark.parametrize("name", ["", "library.db", "library.db-wal", "library.db.evolving"])
def test_a_link_in_the_folder_of_a_project(tmp_path, monkeypatch, name):
    """A link at or in .agentkit, as a checkout may hold, is refused and nothing is made behind it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "victim").mkdir()
    link = tmp_path / ".agentkit" / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path / "victim" / "file" if name else tmp_path / "victim")
    (tmp_path / "tools.json").write_text('[{"name": "ping", "description": "Ping a host."}]')
    store = "sqlite:///.agentkit/library.db"
    result = CliRunner().invoke(main, ["tools", "import", "--yes", "tools.json", "--store", store])
    assert result.exit_code != 0
    assert "is a link" in result.output
    assert list((tmp_path / "victim").iterdir()) == []


CONTENT = b"one line of data\n"
FILES = (PackageFile(path="sample_data/numbers.txt", saved_as="in/numbers.txt"),)


@pytest.fixture
def downloaded(wheel, tmp_path, monkeypatch):
    """The same wheel, downloaded without a process of pip."""

    def download(requirement, folder, progress):
        return Path(shutil.copy(next((tmp_path / "links").iterdir()), folder))

    monkeypatch.setattr(fetch, "_download", download)
    return wheel


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A wheel that pip finds without a network; gives its digest."""
    links = tmp_path / "links"
    links.mkdir()
    path = links / "sample_data-1.0-py3-none-any.whl"
    info = "sample_data-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("sample_data/numbers.txt", CONTENT)
        archive.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: sample_data\nVersion: 1.0\nRequires-Dist: no-such-package-anywhere\n",
        )
        archive.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_named_files_are_taken_out_without_the_dependencies(wheel, tmp_path):
    """The files arrive under their new names although a dependency cannot be found."""
    fetch_package_files("sample_data==1.0", sha256=wheel, files=FILES, destination=tmp_path / "d")
    assert (tmp_path / "d" / "in" / "numbers.txt").read_bytes() == CONTENT
    assert [p.name for p in (tmp_path / "d").iterdir()] == ["in"]


def test_a_second_fetch_downloads_nothing(wheel, tmp_path, monkeypatch):
    """Files that are there already make a fetch free, even when the index is gone."""
    fetch_package_files("sample_data==1.0", sha256=wheel, files=FILES, destination=tmp_path / "d")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "gone"))
    fetch_package_files("sample_data==1.0", sha256=wheel, files=FILES, destination=tmp_path / "d")
    assert all((tmp_path / "d" / file.saved_as).is_file() for file in FILES)


def test_an_altered_wheel_is_refused_and_leaves_nothing(downloaded, tmp_path):
    """A wheel with another digest raises an error that names both digests."""
    with pytest.raises(FetchError, match=f"{downloaded}, expected {'0' * 64}"):
        fetch_package_files(
            "sample_data==1.0", sha256="0" * 64, files=FILES, destination=tmp_path / "d"
        )
    assert list((tmp_path / "d").iterdir()) == []


def test_an_altered_file_is_refused(downloaded, tmp_path):
    """A file whose own digest differs is not put in its place."""
    files = (PackageFile(path=FILES[0].path, saved_as="x", sha256="1" * 64),)
    with pytest.raises(FetchError, match=r"sample_data/numbers\.txt has SHA-256"):
        fetch_package_files(
            "sample_data==1.0", sha256=downloaded, files=files, destination=tmp_path / "d"
        )
    assert not (tmp_path / "d" / "x").exists()


def test_a_missing_member_is_named(downloaded, tmp_path):
    """A wheel that lacks a wanted file raises an error that names the file."""
    files = (PackageFile(path="sample_data/other.txt", saved_as="x"),)
    with pytest.raises(FetchError, match=r"holds no .sample_data/other\.txt."):
        fetch_package_files(
            "sample_data==1.0", sha256=downloaded, files=files, destination=tmp_path / "d"
        )


def test_a_failed_download_says_why(wheel, tmp_path):
    """When pip finds no such release, its reason is in the error."""
    with pytest.raises(FetchError, match=r"could not download sample_data==9.9: ERROR: .*9\.9"):
        fetch_package_files(
            "sample_data==9.9", sha256=wheel, files=FILES, destination=tmp_path / "d"
        )


def test_the_cache_can_be_moved(monkeypatch):
    """AGENTKIT_CACHE wins over XDG_CACHE_HOME, which wins over ~/.cache."""
    monkeypatch.delenv("AGENTKIT_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_directory() == Path("~/.cache/agentkit").expanduser()
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_directory() == Path("/xdg/agentkit")
    monkeypatch.setenv("AGENTKIT_CACHE", "/own")
    assert cache_directory() == Path("/own")


class Large:
    """A result of which a text is costly."""

    def __repr__(self) -> str:
        raise AssertionError("a text of the result was made")


def test_nobody_makes_a_text_of_the_result():
    """The result comes back untouched, however large it is."""

    async def work() -> Large:
        return Large()

    assert isinstance(wait_for(work()), Large)


def test_an_error_comes_through():
    """What the coroutine raises, the caller sees."""

    async def work() -> None:
        raise LookupError("not there")

    with pytest.raises(LookupError, match="not there"):
        wait_for(work())
