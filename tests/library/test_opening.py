"""``open_store`` turns the name of a store into the store."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentkit import open_store
from agentkit.errors import StoreError, UnknownSchemeError, UsageError
from agentkit.library import Store
from agentkit.library.memory import MemoryStore
from agentkit.library.sqlite import SQLiteStore


def opened_path(url: str | Path) -> Path:
    """The file behind a SQLite URL."""
    store = open_store(url)
    store.close()
    assert isinstance(store, SQLiteStore)
    return store.path


@pytest.mark.parametrize("url", ["memory:", "memory://", "MEMORY:"])
def test_memory_opens_a_new_store_each_time(url):
    """A memory URL gives a store of both halves, and never the same one twice."""
    first, second = open_store(url), open_store(url)
    assert isinstance(first, MemoryStore)
    assert isinstance(first, Store)
    assert first is not second


def test_slashes_tell_a_relative_path_from_an_absolute_one(tmp_path, monkeypatch):
    """sqlite:///name is a file in the working directory, sqlite:////path one by its absolute path."""
    monkeypatch.chdir(tmp_path)
    assert opened_path("sqlite:///library.db") == Path("library.db")
    assert (
        opened_path(f"sqlite:///{tmp_path}/my library %20?#.data")
        == tmp_path / "my library %20?#.data"
    )
    assert (tmp_path / "my library %20?#.data").exists()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "library",
        "sqlite:",
        "sqlite://",
        "sqlite://a",
        "memory:mine",
    ],
)
def test_what_is_no_url_says_what_to_write(url):
    """A URL that names nothing raises, with a form that works in the message."""
    with pytest.raises(UsageError, match="sqlite:///"):
        open_store(url)


@pytest.fixture
def without_plugins(monkeypatch):
    """As on a machine where no plugin is installed."""
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())


@pytest.mark.usefixtures("without_plugins")
@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("postgresql://host/db", "pip install agentkit-postgres"),
        ("redis://host/0", "pip install agentkit-redis"),
        ("ftp://host/library.db", "docs/write-a-store.md"),
    ],
)
def test_an_unknown_scheme_says_what_to_install(url, line):
    """A scheme that nobody answers for lists the installed ones and the line to type."""
    with pytest.raises(UnknownSchemeError, match=line) as caught:
        open_store(url)
    assert caught.value.scheme == url.partition(":")[0]
    assert {"memory", "sqlite"} <= set(caught.value.installed)


@pytest.mark.usefixtures("without_plugins")
@pytest.mark.parametrize(
    "url",
    ["redis://app:hunter2@host/0", "redis//app:hunter2@host/0", "redis://app:a@hunter2@[host/0"],
)
def test_a_password_is_not_shown(url):
    """The message of an unknown scheme keeps the password to itself, also of a mistyped URL."""
    with pytest.raises(UnknownSchemeError) as caught:
        open_store(url)
    assert "hunter2" not in str(caught.value)
    assert "app" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "reason"), [("folder.db", "it is a folder"), ("missing/a.db", "does not exist")]
)
def test_a_file_that_can_not_be_opened_says_why(tmp_path, name, reason):
    """A folder in the place of the file, or a folder that is missing, is named as the reason."""
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(StoreError, match=reason):
        open_store(tmp_path / name)


MODULE = """
from agentkit.library.memory import MemoryStore

class Shelf(MemoryStore):
    def __init__(self, url):
        super().__init__()
        self.url = url

def not_a_store(url):
    return {"url": url}
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a distribution that has one module and the given entry points."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(distribution: str, **entry_points: str) -> None:
        (tmp_path / "shelf_store.py").write_text(MODULE)
        folder = tmp_path / f"{distribution}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
        )
        lines = [f"{name} = {value}" for name, value in entry_points.items()]
        (folder / "entry_points.txt").write_text("\n".join(["[agentkit.stores]", *lines]))

    return install


def test_a_plugin_answers_for_its_scheme(install):
    """The callable behind the entry point gets the whole URL, and its store is returned."""
    install("shelf", shelf="shelf_store:Shelf")
    store = open_store("shelf://upper/left?x=1")
    assert isinstance(store, MemoryStore)
    assert store.url == "shelf://upper/left?x=1"


@pytest.mark.parametrize("value", ["missing_module:Shelf", "shelf_store:Missing"])
def test_a_broken_plugin_is_named(install, value):
    """A plugin that cannot be imported raises with its name, not with an import error alone."""
    install("shelf", shelf=value)
    with pytest.raises(StoreError, match=value) as caught:
        open_store("shelf:")
    assert isinstance(caught.value.__cause__, ImportError | AttributeError)
