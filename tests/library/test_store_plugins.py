"""Stores of other distributions are found by their entry point."""

from __future__ import annotations

import pytest

from agentkit import open_store
from agentkit.errors import StoreError, UnknownSchemeError
from agentkit.library.memory import MemoryStore

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


def test_an_installed_plugin_is_listed(install):
    """An unknown scheme lists the schemes of plugins too."""
    install("shelf", shelf="shelf_store:Shelf")
    with pytest.raises(UnknownSchemeError) as caught:
        open_store("cupboard:")
    assert set(caught.value.installed) >= {"memory", "shelf", "sqlite"}


@pytest.mark.parametrize("value", ["missing_module:Shelf", "shelf_store:Missing"])
def test_a_broken_plugin_is_named(install, value):
    """A plugin that can not be imported raises with its name, not with an import error alone."""
    install("shelf", shelf=value)
    with pytest.raises(StoreError, match=value) as caught:
        open_store("shelf:")
    assert isinstance(caught.value.__cause__, ImportError | AttributeError)


def test_a_plugin_that_returns_something_else_is_named(install):
    """A plugin whose callable returns no store is told so."""
    install("shelf", shelf="shelf_store:not_a_store")
    with pytest.raises(StoreError, match="returned a dict"):
        open_store("shelf:")


def test_two_plugins_for_one_scheme_are_refused(install):
    """Exactly one plugin may answer for a scheme; two are both named."""
    install("shelf", shelf="shelf_store:Shelf")
    install("other_shelf", shelf="shelf_store:not_a_store")
    with pytest.raises(StoreError, match="shelf_store:Shelf, shelf_store:not_a_store"):
        open_store("shelf:")


def test_the_built_in_schemes_can_not_be_taken(install):
    """A plugin can not answer for memory or sqlite."""
    install("shelf", memory="shelf_store:not_a_store")
    assert isinstance(open_store("memory:"), MemoryStore)
