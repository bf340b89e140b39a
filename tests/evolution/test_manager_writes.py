"""What the Tool Manager writes, and when."""

from __future__ import annotations

import pytest

from agentkit import open_store
from agentkit.errors import StoreError
from agentkit.evolution.dry_run import InsertPolicy
from agentkit.evolution.insertion import Added, Merged
from agentkit.evolution.manager import ToolManager
from agentkit.testing import primitive_library

# --- The manager writes whole changes, once, whoever else writes and whatever breaks in betwe ----
# The manager writes whole changes, once, whoever else writes and whatever breaks in between.


def numbered(number, *, offset=None):
    """A composite of its own for each number."""
    return f'''
@composite(examples=[{{"arguments": {{"x": 1}}, "result": {number + (offset or number)}}}])
def plus_{number}(x: float) -> float:
    """Number {number} and {offset or number} more, by tool number {number}."""
    return add(mul(x, {number}), {offset or number})
'''


@pytest.fixture
def url(tmp_path):
    """A file that holds the primitives."""
    url = f"sqlite:///{tmp_path / 'library.db'}"
    store = open_store(url)
    ToolManager(store).register(primitive_library())
    store.close()
    return url


def manager_at(url):
    """A manager of its own over the file."""
    return ToolManager(open_store(url), tools=primitive_library(), author=f"manager {id(url)}")


def test_a_stale_manager_merges_into_what_the_other_added(url):
    """The same tool from two managers is added once, and merged the second time."""
    one, other = manager_at(url), manager_at(url)
    assert isinstance(one.insert(numbered(2)), Added)
    twin = (
        numbered(2)
        .replace("plus_2", "twin")
        .replace('"x": 1}, "result": 4', '"x": 2}, "result": 6')
    )
    outcome = other.insert(twin)
    assert isinstance(outcome, Merged)
    assert (outcome.into, outcome.examples_moved) == ("plus_2", 1)


def test_a_repeated_candidate_changes_the_library_once(url):
    """A retry is merged into what it made the first time, from this manager or another one."""
    manager = manager_at(url)
    manager.insert(numbered(2))
    for one in (manager, manager_at(url)):
        again = one.insert(numbered(2))
        assert isinstance(again, Merged)
        assert (again.into, again.version, again.examples_moved) == ("plus_2", 2, 0)


class Broken:
    """A store whose connection is lost when something is written."""

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        return getattr(self._store, name)

    def commit(self, change, *, expected_version):
        """Fail."""
        raise StoreError("the connection is lost")


def test_a_crash_between_validation_and_commit_leaves_nothing(url):
    """When the store fails, the manager and the file are as they were, and a retry works."""
    store = open_store(url)
    manager = ToolManager(Broken(store), tools=primitive_library())
    before = manager.library
    with pytest.raises(StoreError, match="connection is lost"):
        manager.insert(numbered(2))
    assert manager.library is before
    assert store.load().digest == before.digest
    outcome = manager_at(url).insert(numbered(2))
    assert isinstance(outcome, Added)
    assert outcome.version == 2


def test_a_revision_replaces_and_what_stands_above_follows(url):
    """A revision that keeps what others rely on is taken, and its parents pin it anew."""
    manager = ToolManager(
        open_store(url), tools=primitive_library(), policy=InsertPolicy(allow_revisions=True)
    )
    manager.insert(numbered(2))
    manager.insert('''
@composite(examples=[{"arguments": {"x": 1}, "result": 8}])
def twice(x: float) -> float:
    """Two of them."""
    return add(plus_2(x), plus_2(x))
''')
    revised = numbered(2).replace("add(mul(x, 2), 2)", "mul(add(x, 1), 2)")
    outcome = manager.insert(revised)
    assert isinstance(outcome, Added)
    assert outcome.revised
    assert outcome.repinned == ("twice",)
    held = manager_at(url).library
    (pin,) = [pin for pin in held["twice"].definition.signature.children if pin.name == "plus_2"]
    assert pin.digest == outcome.definition.digest
    assert manager.library["twice"](x=2) == held["twice"](x=2) == 12
