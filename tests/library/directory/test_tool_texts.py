"""What is written of a tool is read back as it was, and reads well."""

from __future__ import annotations

import json
import unicodedata

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from agentkit import ToolDefinition
from agentkit.errors import DefinitionError
from agentkit.library.directory.files import file_stem, from_yaml, text_of, to_yaml
from agentkit.testing import sample_library
from agentkit.tools.definition import Description, Example, Signature

TRAPS = [
    *("no", "y", "NULL", "~", "true", "1e3", "1_000", "0x1f", "010", ".5", ".inf", "190:20:30"),
    *("2024-01-01", "=", "<<", "-", "- a", "? a", "a: b", "a:", "a #b", "#", "---", "...", "%a"),
    *("!!str a", "&a", "*a", "@a", "`a", "|", ">", '"', "'", "\\", "[a", "{a", "a, b", "", " "),
    *(" a", "a ", "a\n", "a\n\n", "\n", "\na", "\n\na\n", "  a\n b", "a\n  b\n", "\ta", "a\n\tb"),
    *("a \nb", "a\n \nb", "a\rb", "\u0085", "a\u2028b", "\ufeffa", "\u00a0", "a\u202eb", "\x00"),
    *("天気", "e\u0301", "🌦️", "\U0010ffff"),
]
CHARACTERS = st.one_of(
    st.characters(exclude_categories=["Cs"]), st.sampled_from(" \n\t:#-'\"\\|>\u0085[]{},aA1é天")
)
WORDS = st.sampled_from(
    [
        "word ",
        "Sentence. ",
        "Next ",
        "e.g. ",
        "\n",
        "\n\n",
        "- a",
        "# b",
        "  ",
        "\t",
        "é天",
        "a" * 99,
    ]
)
TEXTS = st.one_of(
    st.sampled_from(TRAPS), st.text(CHARACTERS), st.lists(WORDS, max_size=60).map("".join)
)
NUMBERS = st.one_of(
    st.integers(-(10**40), 10**40), st.floats(allow_nan=False, allow_infinity=False)
)
DATA = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXTS, DATA, min_size=1, max_size=4)


def same(one: object, other: object) -> bool:
    """Whether data are equal to the letter: order of keys, and ``1`` is not ``1.0``."""
    return json.dumps(one) == json.dumps(other)


@settings(deadline=None)
@given(OBJECTS)
def test_any_data_come_back_from_yaml(record):
    """What JSON can hold is read back exactly, by us and by a reader of YAML 1.1."""
    text = to_yaml(record)
    assert same(from_yaml(text), record)
    assert same(yaml.safe_load(text), record)


@pytest.mark.parametrize("text", TRAPS)
def test_each_trap_is_avoided(text):
    """A text that YAML takes for something else is kept wherever it stands in a definition."""
    tool = ToolDefinition(
        name=f"name {text}",
        signature=Signature(parameters={"properties": {text: {"enum": [text, None, 1.0]}}}),
        description=Description(summary=text, tags=(text,), parameters={text: text}),
        examples=(Example(arguments={text: [text, {text: text}]}, result=text or None),),
    )
    assert ToolDefinition.from_json(from_yaml(text_of(tool).decode())) == tool


def test_keys_stand_in_the_same_order():
    """What people review comes first; the order in which a definition was made does not matter."""
    tool = sample_library()["bill_split"].definition
    record = dict(reversed(tool.to_json().items()))
    text = text_of(ToolDefinition.from_json(record))
    assert text == text_of(tool)
    keys = [line.split(":")[0] for line in text.decode().splitlines() if line[0].isalpha()]
    assert keys == [
        "name",
        "description",
        "signature",
        "specification",
        "examples",
        "origin",
        "format",
    ]


def test_what_nobody_sees_is_written_out():
    """Characters that hide from a reviewer stand as their numbers."""
    shown = to_yaml({"summary": "a\u200bb\u202ec\u00a0d"})
    assert shown == 'summary: "a\\u200bb\\u202ec\\u00a0d"\n'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: [1", "line 2"),
        ("a: &x 1\nb: *x", "stands for another part"),
        ("a: 1\na: 2", "a second time"),
        ("1: a", "is not text"),
        ("a: !!python/object/apply:os.system [ls]", "tag"),
        ("a: 1\n---\nb: 2", "another document"),
        ("\x00", "not allowed"),
        ("a: " + "[" * 3000, "nest"),
        ("a: " + "[" * 100_000 + "]" * 100_000, "nest"),
        (f"a: {'9' * 5000}", "cannot be read"),
    ],
)
def test_what_json_does_not_have_is_refused(text, why):
    """Anchors, doubled keys, foreign types and broken lines are told, and nothing is run."""
    with pytest.raises(DefinitionError, match=why):
        from_yaml(text)


def test_very_many_values_are_refused():
    """A file that is all values would take a hundred times its size in memory; none is built."""
    with pytest.raises(DefinitionError, match="it holds more than"):
        from_yaml("a: [" + "1," * 400_000 + "1]")


def test_a_person_means_letters():
    """``no``, dates and sexagesimal numbers that a person writes are texts, as they look."""
    assert from_yaml("a: no\nb: 2024-01-01\nc: 1:30\nd: 010\ne: 1e3\nf: ~") == {
        "a": "no",
        "b": "2024-01-01",
        "c": "1:30",
        "d": "010",
        "e": 1000.0,
        "f": None,
    }


NAMES = st.one_of(
    st.text(min_size=1),
    st.text(st.sampled_from("aAbBéÉ-_./ 1"), min_size=1, max_size=6),
    st.text("ab", min_size=60, max_size=300),
)


def as_a_file_system_sees(stem: str) -> str:
    """What a file system compares that sees neither case nor the form of accents."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", stem).casefold())


@given(NAMES, NAMES)
def test_two_names_never_share_a_file(one, other):
    """Names that differ have files that differ, also where case and accents do not count."""
    if one != other:
        assert as_a_file_system_sees(file_stem(one)) != as_a_file_system_sees(file_stem(other))


@given(NAMES)
def test_a_name_is_safe_everywhere(name):
    """No name leaves the folder, is hidden, is too long or means a device."""
    stem = file_stem(name)
    assert not set(stem) & set('/\\:*?"<>|\0 ')
    assert stem.isprintable()
    assert not stem.startswith((".", "-"))
    assert not stem.endswith(".")
    assert len(f"{stem}.yaml".encode()) <= 255
    assert stem.split(".")[0] not in {"con", "nul", "aux", "prn", "com1", "lpt9"}
