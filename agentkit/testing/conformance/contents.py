"""Tests of what a store holds: names and words of every kind, and ten thousand tools."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit.errors import ToolNotFoundError
from agentkit.library.events import Author, EventDraft, chained
from agentkit.library.store import LibraryChange, Store
from agentkit.testing.conformance.fixtures import OpenAgain, StoreFixtures, a_tool, put
from agentkit.tools.definition import Example, Signature, ToolDefinition

_MANY = 10_000

_NAMES = {
    "two forms of one letter": ("caf\u00e9", "cafe\u0301", "CAF\u00c9"),
    "case": ("ping", "Ping", "PING", "stra\u00dfe", "strasse", "\u0130", "i\u0307"),
    "spaces": ("a", "a ", " a", "a\t", "a\n", "a\u00a0", "a\u200b", "\ufeffa"),
    "from right to left": (
        "\u05d1\u05d3\u05d9\u05e7\u05d4",
        "\u202eabc",
        "abc",
        "\u0627\u062e\u062a\u0628\u0627\u0631",
    ),
    "emoji": ("🌦️", "🌦", "👩‍👩‍👧", "👩👩👧", "🇩🇪", "\U0010ffff"),
    "control characters": ("nul", "nul\0", "nul\0l", "\x01", "\x7f", "\x1b[2J", "a\x85", "a\u2028"),
    "files and folders": (".", "..", "../up", "a/b", "a\\b", "/", "CON", "nul.json", "~", "-rf"),
    "YAML and numbers": ("null", "true", "no", "1", "1.0", "01", "- a", "a: b", "#", "{}", "!x"),
    "patterns and quotes": ("%", "_", "*", "a_b", "aXb", "'", '"', "''", "\\", "$1", "{0}", "?"),
    "long": ("n" * 300, "n" * 299, "n" * 300 + "m", "天" * 5_000, "天" * 4_999),
}
"""Names that are all different tools, however alike a file system or a collation finds them."""

_TEXTS = {
    "ends of lines": "one\ntwo\r\nthree\rfour\u2028five\u2029six\x85seven\n\n",
    "spaces": "  in front, behind  \n\t tab\t\n \n",
    "control characters": "".join(map(chr, [*range(32), *range(0x7F, 0xA0)])),
    "composed and decomposed": "e\u0301 \u00e9 \u1e69 s\u0323\u0307 \u212b \u00c5",
    "emoji and the last plane": "👩🏽‍💻 \U0001f3f4\U000e0067\U000e007f \U0010ffff \ufffe \ufdd0",
    "directions": "\u202eabc\u202c \u2067x\u2069 \u200f\u05d0\u05d1",
    "marks of other formats": "---\n...\n%YAML\n<![CDATA[\n]]>\n\\u0000 \\ud83d &amp; %s {x} ${y}",
    "a mark at the front": "\ufeffbom",
    "no end": "x" * 100_000 + " " + "天" * 100_000,
}


def _many() -> tuple[ToolDefinition, ...]:
    parameters = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
    signature = Signature(parameters=parameters)
    return tuple(
        replace(a_tool(f"tool_{place}", f"does the thing {place}"), signature=signature)
        for place in range(_MANY)
    )


class StoreContentConformance(StoreFixtures):
    """That a store gives back what it got, whatever it is and however much."""

    @pytest.mark.parametrize("names", _NAMES.values(), ids=_NAMES)
    def test_names_that_look_alike_are_different_tools(
        self, store: Store, names: tuple[str, ...]
    ) -> None:
        """Each name is a tool of its own: loaded, changed, logged and removed alone."""
        added = [a_tool(name, f"text {place}") for place, name in enumerate(names)]
        store.commit(put("add", *added), expected_version=0)
        assert list(store.load().definitions) == added
        store.commit(put("change", a_tool(names[0], "changed")), expected_version=1)
        store.commit(put("remove", remove=(names[1],)), expected_version=2)
        kept = [a_tool(names[0], "changed"), *added[2:]]
        assert list(store.load().definitions) == kept
        proposal_ids = [[one.proposal_id for one in store.history(name)] for name in names]
        assert proposal_ids == [["add", "change"], ["add", "remove"], *[["add"]] * (len(names) - 2)]
        with pytest.raises(ToolNotFoundError):
            store.commit(put("again", remove=(names[1],)), expected_version=3)
        store.commit(put("back", added[1]), expected_version=3)
        assert list(store.load().definitions) == [*kept, added[1]]

    @pytest.mark.parametrize("text", _TEXTS.values(), ids=_TEXTS)
    def test_texts_come_back_as_they_were(self, store: Store, text: str) -> None:
        """Any text survives to the character: in definitions, examples, changes and events."""
        example = Example(arguments={text: [text]}, result={"said": text}, query=text)
        tool = replace(a_tool("a", text), examples=(example,))
        draft = EventDraft(
            kind="written", author=Author(kind="person", name=text), reason=text, facts={text: text}
        )
        change = LibraryChange(
            proposal_id=f"id {text}",
            upserts=(tool,),
            author=text,
            reason=text,
            evidence=(text, "e2"),
            events=chained(None, [draft], at="2026-11-21T10:00:00+00:00"),
        )
        assert store.commit(change, expected_version=0) == 1
        assert store.commit(change, expected_version=7) == 1
        (loaded,) = store.load().definitions
        assert (loaded, loaded.digest) == (tool, tool.digest)
        (kept,) = store.history("a")
        assert (kept.proposal_id, kept.definition) == (change.proposal_id, tool)
        assert (kept.author, kept.reason, kept.evidence) == (text, text, (text, "e2"))
        assert tuple(store.events()) == change.events

    def test_a_large_library_is_one_commit(self, store: Store, open_store_again: OpenAgain) -> None:
        """Ten thousand tools go in at once; a replica that holds them catches up with a change."""
        tools, replica = _many(), open_store_again()
        store.commit(put("all", *tools), expected_version=0)
        assert replica.load().definitions == tools
        change = put("one", a_tool("tool_5000", "better"), a_tool("last"), remove=("tool_0",))
        store.commit(change, expected_version=1)
        store.commit(put("two", a_tool("tool_0", "back")), expected_version=2)
        better, last = change.upserts
        expected = (*tools[1:5_000], better, *tools[5_001:], last, a_tool("tool_0", "back"))
        for caught_up in (replica.load(), open_store_again().load(), store.load()):
            assert (caught_up.version, caught_up.definitions) == (3, expected)
        assert store.load(1).definitions == tools
        assert [len(store.history(name)) for name in ("tool_0", "tool_5000", "tool_1")] == [3, 2, 1]
