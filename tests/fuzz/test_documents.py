"""Listings, descriptions and files from outside are read within a bound, or refused with a reason."""

from __future__ import annotations

import gzip
from contextlib import suppress

import pytest
from hypothesis import given
from support.cost import check_cost, fuzzing
from support.hostile import DOCUMENTS, LISTINGS, Foreign, edited

from agentkit.errors import AgentKitError
from agentkit.evolution import ToolManager
from agentkit.interop.export import artifact_of, artifact_text, parse_artifact
from agentkit.interop.mcp.listing import RawListing
from agentkit.interop.mcp.screening import ImportPolicy, Memory, import_listing
from agentkit.interop.openapi import openapi_tools
from agentkit.library import Author, open_store
from agentkit.testing import sample_library


def small_artifact() -> str:
    """An artifact of two tools with their history."""
    store = open_store("memory:")
    tools = [sample_library()[name] for name in ("cars_search", "bill_split")]
    ToolManager(store, author=Author(kind="person", name="ada")).register(tools, reason="a start")
    return artifact_text(artifact_of(store))


ARTIFACT = small_artifact()


@fuzzing
@given(listing=LISTINGS)
def test_listings_of_mcp_servers_are_sorted_within_a_bound(listing: Foreign) -> None:
    """Each entry is offered or held; nothing raises, however it is written."""

    def work() -> None:
        raw = RawListing(records=tuple(listing.value))
        import_listing(raw, ImportPolicy(server="foreign"), Memory())

    check_cost(work, listing.size)


@fuzzing
@given(document=DOCUMENTS)
def test_openapi_descriptions_are_read_within_a_bound(document: Foreign) -> None:
    """A description becomes tools and a report, or is refused."""

    def work() -> None:
        with suppress(AgentKitError):
            openapi_tools(document.value)

    check_cost(work, document.size)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@fuzzing
@given(text=edited(ARTIFACT))
def test_damaged_artifacts_are_refused_within_a_bound(packed, text) -> None:
    """An artifact that somebody edited is read as it is, or refused with what is wrong."""
    data = gzip.compress(text.encode(), 1) if packed else text.encode()

    def work() -> None:
        with suppress(AgentKitError):
            parse_artifact(data)

    check_cost(work, len(text))


BOMBS = {
    "zeros": lambda: b"0," * 40_000_000,
    "brackets": lambda: b"[" * 80_000_000,
    "objects": lambda: b'{"a":{"b":[]}},' * 5_000_000,
    "one text": lambda: b"a" * 80_000_000,
    "digits": lambda: b"9" * 80_000_000,
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_small_files_that_expand_are_refused(bomb) -> None:
    """Neither the bytes nor the values that a few kilobytes expand to fill the memory."""
    data = gzip.compress(b'{"agentkit_artifact": [' + BOMBS[bomb]() + b"0]}", 9)

    def work() -> None:
        with suppress(AgentKitError):
            parse_artifact(data)

    check_cost(work, len(data))
