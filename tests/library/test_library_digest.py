"""The digest of a library, worked out anew or brought up to date, is that of its canonical JSON."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.library.library import DIGEST_LINES
from agentkit.tools.canonical import digest
from agentkit.tools.definition import Description

# RFC 8785 puts the third before the second, for it orders by UTF-16; quotes are escaped
NAMES = ["a", "\uff5e", "\U0001f600", 'say "b"', "ä", "a b", "Z", "z", "\\", "\x7f"]


def tool(name, text=""):
    return ToolDefinition(name=name, description=Description(summary=text))


def whole(library):
    """The digest as it is defined, from all tools at once."""
    return digest({one.name: one.definition.digest for one in library})


names = st.one_of(st.sampled_from(NAMES), st.text(min_size=1, max_size=3).filter(str.strip))
steps = st.lists(
    st.one_of(
        st.sets(names, max_size=4),
        st.dictionaries(names, st.sampled_from(["x", "y"]), max_size=4),
    ),
    max_size=8,
)


@settings(max_examples=200, deadline=None)
@given(steps, st.sets(st.integers(0, 8)))
def test_any_changes_give_the_digest_of_the_whole(changes, asked):
    """However tools come, change and go, and whichever snapshots are asked in between."""
    library = Library([tool("a")])
    for place, change in enumerate(changes):
        if place in asked:
            assert library.digest == whole(library)
        if isinstance(change, set):
            library = library.without(change)
        else:
            library = library.with_tools(tool(name, text) for name, text in change.items())
    assert library.digest == whole(library) == Library(list(library)).digest


def test_known_libraries_keep_their_digests():
    """Digests stand in stores, artifacts and episodes; they must never move."""
    assert Library().digest == digest({})
    named = Library(tool(name) for name in NAMES)
    assert named.digest == "5f5423e08bf03acd2d20acc88f06c1e2f24d818a3bdb650d594318a92785b6d2"


def test_what_stayed_is_not_written_again():
    """The lines of tools that did not change are those of the snapshot before."""
    library = Library(tool(name) for name in NAMES)
    before = library.derived(DIGEST_LINES)
    changed = library.with_tools([tool("a", "new")]).derived(DIGEST_LINES)
    same = [place for place, line in before.items() if changed[place] is line]
    assert len(same) == len(NAMES) - 1
    assert list(changed) == list(before)


@pytest.mark.parametrize("grown", [True, False])
def test_a_name_that_no_json_can_hold_is_refused(grown):
    """Half of a surrogate pair has no digest, whether it came first or later."""
    broken = tool("\ud800")
    library = Library([tool("a")])
    if grown:
        assert library.digest
    with pytest.raises(ValueError, match="not JSON data"):
        library.with_tools([broken]).digest  # noqa: B018 - asking is what raises
