"""Whatever happens in whatever order, a replica serves committed versions and never goes back."""

from __future__ import annotations

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agentkit import ToolDefinition, open_store
from agentkit.errors import StaleVersionError, StoreUnavailableError
from agentkit.library import LibraryChange, Replica
from agentkit.testing.unreliable_store import UnreliableStore

NAMES = st.sampled_from(["a", "b", "c"])
BOUND_SECONDS = 30.0


class ReplicaMachine(RuleBasedStateMachine):
    """Commits by others and through the replica, a store that goes and comes, looks and time."""

    @initialize(hints=st.booleans())
    def begin(self, hints):
        self.kept = open_store("memory:")
        self.far = UnreliableStore(self.kept)
        self.now = 0.0
        self.knew = 0.0
        self.is_away = False
        # Hints come from a thread, at any moment; without them only the rules look.
        self.replica = Replica(
            self.kept if hints else self.far,
            refresh_seconds=20.0,
            max_staleness_seconds=BOUND_SECONDS,
            when_stale="refuse",
            clock=lambda: self.now,
        )
        self.hints = hints
        if not hints:
            self.replica.stop()  # the thread has looked once by now, or never will
        self.replica.refresh()
        self.proposals = 0
        self.last = 0
        self.pinned = {}
        self.committed = {0: self.kept.load(0).digest}

    @rule(name=NAMES)
    def others_commit(self, name):
        self._commit(self.kept, name)

    @rule(name=NAMES)
    def commit_here(self, name):
        try:
            version = self._commit(self.replica, name)
        except StoreUnavailableError:
            assert self.is_away
        except StaleVersionError:  # others were faster, and now the replica knows
            assert not self.is_away
            assert self.replica.load().version == max(self.committed)
            self.knew = self.now
        else:
            assert self.replica.load().version == version
            self.knew = self.now

    def _commit(self, store, name):
        expected = self.kept.load().version if store is self.kept else store.load().version
        self.proposals += 1
        change = LibraryChange(
            proposal_id=f"p{self.proposals}", upserts=(ToolDefinition(name=name),)
        )
        version = store.commit(change, expected_version=expected)
        self.committed[version] = self.kept.load(version).digest
        return version

    @precondition(lambda self: not self.hints)
    @rule()
    def away(self):
        self.far.away()
        self.is_away = True

    @precondition(lambda self: not self.hints)
    @rule()
    def back(self):
        self.far.back()
        self.is_away = False

    @rule()
    def look(self):
        try:
            found = self.replica.refresh()
        except StoreUnavailableError:
            assert self.is_away
            assert self.replica.status.state == "away"
        else:
            assert found.version >= max(self.committed)
            assert self.replica.status.state == "current"
            self.knew = self.now

    @rule(seconds=st.floats(0, 60))
    def time_passes(self, seconds):
        self.now += seconds

    @rule()
    def a_conversation_begins(self):
        library = self.replica.load()
        self.pinned[library.version] = library.digest

    @invariant()
    def what_is_served_was_committed_and_only_grows(self):
        library = self.replica.load()
        assert library.version >= self.last
        assert library.digest == self.committed[library.version]
        self.last = library.version

    @invariant()
    def conversations_have_their_version(self):
        for version, digest in self.pinned.items():
            assert self.replica.load(version).digest == digest

    @invariant()
    def staleness_is_told(self):
        status = self.replica.status
        if not self.hints:
            assert status.staleness_seconds == self.now - self.knew
        assert status.refuses == (status.staleness_seconds > BOUND_SECONDS)

    def teardown(self):
        if hasattr(self, "replica"):
            self.replica.close()


TestReplica = ReplicaMachine.TestCase
TestReplica.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
