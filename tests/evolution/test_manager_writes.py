"""The manager writes whole changes, once, whoever else writes and whatever breaks in between."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest

from agentkit import open_store, tool
from agentkit.errors import StoreError, UsageError
from agentkit.evolution import Added, InsertPolicy, Merged, Rejected, ToolManager
from agentkit.testing import primitive_library
from agentkit.tools.definition import Specification


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


def test_a_stale_manager_judges_again_on_what_the_other_made(url):
    """The slower of two managers reloads, and its candidate is built on both changes."""
    one, other = manager_at(url), manager_at(url)
    assert isinstance(one.insert(numbered(2)), Added)
    outcome = other.insert(numbered(3))
    assert isinstance(outcome, Added)
    assert outcome.version == 3
    assert {"plus_2", "plus_3"} <= set(other.library.tools)


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


def test_managers_racing_on_one_file_lose_nothing(url):
    """Four managers write eight composites at once; every one of them is in the library."""
    barrier = Barrier(4)

    def work(first):
        patient = InsertPolicy(attempts=100)
        manager = ToolManager(open_store(url), tools=primitive_library(), policy=patient)
        barrier.wait()
        return [manager.insert(numbered(number)) for number in (first, first + 4)]

    with ThreadPoolExecutor(4) as pool:
        outcomes = [outcome for done in pool.map(work, range(2, 6)) for outcome in done]
    assert all(isinstance(outcome, Added) for outcome in outcomes), outcomes
    library = manager_at(url).library
    assert {f"plus_{number}" for number in range(2, 10)} <= set(library.tools)
    assert sorted(outcome.version for outcome in outcomes) == list(range(2, 10))


def test_a_repeated_proposal_changes_the_library_once(url):
    """A retry with the same id finds its first outcome, from this manager or another one."""
    manager = manager_at(url)
    first = manager.insert(numbered(2), proposal_id="p-1")
    manager.insert(numbered(3))
    again = manager.insert(numbered(2), proposal_id="p-1")
    elsewhere = manager_at(url).insert(numbered(2), proposal_id="p-1")
    assert isinstance(first, Added)
    assert first.version == again.version == elsewhere.version == 2
    assert isinstance(again, Added)
    assert isinstance(elsewhere, Added)
    assert manager_at(url).library.version == 3


def test_a_repeated_merge_moves_examples_once(url):
    """A retry of a merge tells the version that moved the examples."""
    manager = manager_at(url)
    manager.insert(numbered(2))
    twin = (
        numbered(2)
        .replace("plus_2", "twin")
        .replace('"x": 1}, "result": 4', '"x": 2}, "result": 6')
    )
    first = manager.insert(twin, proposal_id="m-1")
    manager.insert(numbered(3))
    again = manager.insert(twin, proposal_id="m-1")
    assert isinstance(first, Merged)
    assert isinstance(again, Merged)
    assert first.version == again.version == 3
    assert again.examples_moved == 0


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
        manager.insert(numbered(2), proposal_id="p-1")
    assert manager.library is before
    assert store.load().digest == before.digest
    outcome = manager_at(url).insert(numbered(2), proposal_id="p-1")
    assert isinstance(outcome, Added)
    assert outcome.version == 2


def test_the_managers_snapshot_is_what_the_store_holds(url):
    """The library that a manager carries on by itself equals the one that it would load."""
    manager = manager_at(url)
    manager.insert(numbered(2))
    manager.insert(
        numbered(2)
        .replace("plus_2", "twin")
        .replace('"x": 1}, "result": 4', '"x": 2}, "result": 6')
    )
    manager.insert('''
@composite(examples=[{"arguments": {"x": 1}, "result": 8}])
def twice(x: float) -> float:
    """Two of them."""
    return add(plus_2(x), plus_2(x))
''')
    rejected = manager.insert("def nothing() -> int:\n    return 1")
    assert isinstance(rejected, Rejected)
    carried, loaded = manager.library, manager_at(url).library
    assert (carried.digest, carried.version) == (loaded.digest, loaded.version)
    assert list(carried.tools) == list(loaded.tools)
    assert carried.dag == loaded.dag
    assert [t.is_bound for t in carried] == [t.is_bound for t in loaded]


def test_threads_share_a_manager(url):
    """Candidates from several threads all arrive, and the manager ends at the newest version."""
    policy = InsertPolicy(attempts=100)
    manager = ToolManager(open_store(url), tools=primitive_library(), policy=policy)
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda n: manager.insert(numbered(n)), range(2, 10)))
    assert all(isinstance(outcome, Added) for outcome in outcomes), outcomes
    assert manager.library.version == 9
    assert manager.library["plus_7"](x=1) == 14


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


def test_a_person_may_revise_a_primitive(url):
    """New code under an old name is tried like anything else, with what stands above it."""
    policy = InsertPolicy(allow_revisions=True, allow_primitives=True)
    manager = ToolManager(open_store(url), tools=primitive_library(), policy=policy)
    manager.insert(numbered(2))
    add = manager.library["add"]
    words = replace(
        add.definition, description=replace(add.definition.description, summary="Plus.")
    )
    outcome = manager.insert(add.with_definition(words))
    assert isinstance(outcome, Added)
    assert (outcome.depth, outcome.repinned) == (0, ("plus_2",))
    assert manager.library["plus_2"](x=1) == 4
    broken = replace(add.with_definition(words), function=lambda a, b: a - b)
    worse = replace(
        words, specification=Specification(), examples=(), description=add.definition.description
    )
    lax = ToolManager(
        open_store(url),
        tools=primitive_library(),
        policy=replace(policy, allow_without_examples=True),
    )
    outcome = lax.insert(broken.with_definition(worse))
    assert isinstance(outcome, Rejected)
    assert outcome.code == "breaks_parent"


def test_refresh_takes_up_what_others_made(url):
    """A manager sees another one's work when it is told to look."""
    one, other = manager_at(url), manager_at(url)
    one.insert(numbered(2))
    assert "plus_2" not in other.library
    assert other.refresh().version == 2
    assert other.library["plus_2"](x=1) == 4


def test_registering_waits_its_turn(url):
    """Primitives from a stale manager are added on top of what the other made."""

    @tool
    def fresh(x: int) -> int:
        """Something new."""
        return x

    one, other = manager_at(url), manager_at(url)
    one.insert(numbered(2))
    assert other.register([fresh]) == 3
    assert {"fresh", "plus_2"} <= set(other.library.tools)


@pytest.mark.parametrize(
    "knobs",
    [{"runs": 0}, {"seconds": 0}, {"description_similarity": 2}, {"probes": -1}, {"attempts": -1}],
)
def test_a_policy_that_means_nothing_is_misuse(knobs):
    """Bounds that would refuse everything, or nothing, are told when the policy is made."""
    with pytest.raises(UsageError, match=f"InsertPolicy.{next(iter(knobs))}"):
        InsertPolicy(**knobs)
