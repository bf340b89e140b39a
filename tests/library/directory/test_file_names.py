"""File names of tools: readable, stable, and never shared."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, strategies as st

from agentkit import ToolDefinition, open_store
from agentkit.library import LibraryChange
from agentkit.library.directory.files import file_stem

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


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("get_weather", "get_weather"),
        ("github.search-issues", "github.search-issues"),
        ("GetWeather", "getweather--"),
        ("files/read", "files-read--"),
        ("天気", "天気--"),
        ("../../etc/passwd", "etc-passwd--"),
        ("nul", "nul--"),
        ("a" * 300, "a" * 60 + "--"),
    ],
)
def test_a_name_can_be_read(name, stem):
    """A usual name is that of its file; of others, what can be read comes first."""
    assert file_stem(name).startswith(stem)
    assert (file_stem(name) == name) is (not stem.endswith("--"))


def test_every_tool_has_its_file(tmp_path):
    """Tools whose names differ in case, slashes or accents alone all have files, and come back."""
    names = [
        "add",
        "Add",
        "ADD",
        "a/dd",
        "a-dd",
        "àdd",
        "a\u0300dd",
        "x" * 300,
        "x" * 299,
        "con",
        "..",
    ]
    store = open_store(f"dir:{tmp_path / 'library'}")
    tools = tuple(ToolDefinition(name=name) for name in names)
    store.commit(LibraryChange(proposal_id="1", upserts=tools), expected_version=0)
    files = [path.name for path in (tmp_path / "library" / "tools").iterdir()]
    assert len({name.casefold() for name in files}) == len(names)
    assert list(store.load().tools) == names
    assert list(store.check()) == []
    store.close()
