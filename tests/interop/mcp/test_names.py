"""Names of tools of several servers."""

from __future__ import annotations

from hypothesis import given, strategies as st

from agentkit.interop.mcp.listing import prefixed

WORD = st.text(alphabet="aZ9", min_size=1, max_size=5)
SERVERS = st.lists(WORD, min_size=1, max_size=3).map("_".join)
TOOLS = st.text(min_size=1) | st.text(alphabet="_a.", min_size=1)


@given(SERVERS, TOOLS)
def test_a_prefixed_name_tells_its_parts(server, name):
    """The server and the tool can be read off the name, so no two pairs give one name."""
    assert prefixed(server, name).partition("__")[::2] == (server, name)
