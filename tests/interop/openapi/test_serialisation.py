"""Values in paths, queries, headers and cookies, held against RFC 6570 read on its own."""

from urllib.parse import quote, unquote

import pytest
from hypothesis import given, strategies as st

from agentkit.interop.openapi.requests import header_text, path_text, query_pairs

# RFC 6570, appendix A, as a table: first, separator, named, what an empty value adds.
OPERATORS = {
    "": ("", ",", False, ""),
    ".": (".", ".", False, ""),
    ";": (";", ";", True, ""),
    "?": ("?", "&", True, "="),
}
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
scalars = st.one_of(texts, st.integers(), st.booleans())
values = st.one_of(
    scalars, st.lists(scalars, max_size=4), st.dictionaries(texts, scalars, max_size=4)
)


def expand(operator, name, value, *, explode):
    """``{operator name explode}`` expanded by the algorithm of RFC 6570, section 3.2."""

    def text(item):
        plain = item if isinstance(item, str) else str(item).lower()
        return quote(plain, safe="")

    def named(key, item):
        return f"{key}={item}" if item else f"{key}{empty}"

    first, separator, is_named, empty = OPERATORS[operator]
    key = quote(name, safe="")
    if isinstance(value, list | dict) and not value:
        return ""
    if isinstance(value, list):
        if not explode:
            joined = ",".join(map(text, value))
            return first + (named(key, joined) if is_named else joined)
        return first + separator.join(named(key, text(v)) if is_named else text(v) for v in value)
    if isinstance(value, dict):
        if not explode:
            joined = ",".join(f"{text(k)},{text(v)}" for k, v in value.items())
            return first + (named(key, joined) if is_named else joined)
        pairs = [(text(k), text(v)) for k, v in value.items()]
        made = [named(k, v) if is_named else f"{k}={v}" for k, v in pairs]
        return first + separator.join(made)
    return first + (named(key, text(value)) if is_named else text(value))


@pytest.mark.parametrize(("style", "operator"), [("simple", ""), ("label", "."), ("matrix", ";")])
@given(value=values, name=texts.filter(bool), explode=st.booleans())
def test_paths_are_expansions(style, operator, value, name, explode):
    """``simple``, ``label`` and ``matrix`` are ``{x}``, ``{.x}`` and ``{;x}`` of RFC 6570."""
    made = path_text(name, value, style=style, explode=explode)
    wanted = expand(operator, name, value, explode=explode)
    if style == "label" and not explode and isinstance(value, list | dict):
        # RFC 6570 joins the parts of {.x} by commas when it does not explode, as we do.
        wanted = expand("", name, value, explode=False)
        wanted = f".{wanted}" if value else ""
    assert made == wanted


@given(value=values, name=texts.filter(bool), explode=st.booleans())
def test_form_queries_are_expansions(value, name, explode):
    """``form`` is ``{?x}`` of RFC 6570, without its question mark."""
    made = "&".join("=".join(p) for p in query_pairs(name, value, style="form", explode=explode))
    assert made == expand("?", name, value, explode=explode).removeprefix("?")


@given(value=st.lists(texts, min_size=1, max_size=4))
def test_delimited_queries_are_one_value(value):
    """OpenAPI's own delimiters join the encoded parts of a list."""
    for style, delimiter in (("spaceDelimited", "%20"), ("pipeDelimited", "%7C")):
        pairs = list(query_pairs("q", value, style=style, explode=False))
        assert pairs == [("q", delimiter.join(quote(part, safe="") for part in value))]


@given(value=st.dictionaries(texts.filter(bool), scalars, max_size=4))
def test_deep_objects_name_each_property(value):
    """``deepObject`` writes ``name[property]=value`` for each property."""
    pairs = query_pairs("f", value, style="deepObject", explode=True)
    read = {unquote(name)[2:-1]: unquote(text) for name, text in pairs}
    assert read == {k: v if isinstance(v, str) else str(v).lower() for k, v in value.items()}


def test_deeper_objects_and_lists_go_on():
    """Beyond what OpenAPI defines, brackets and indexes are what servers read."""
    value = {"a": {"b": [1, {"c": True}]}, "none": None, "empty": []}
    pairs = list(query_pairs("f", value, style="deepObject", explode=True))
    assert [f"{unquote(k)}={v}" for k, v in pairs] == ["f[a][b][0]=1", "f[a][b][1][c]=true"]


@given(text=texts)
def test_reserved_characters_stay_only_where_they_are_harmless(text):
    """``allowReserved`` never lets a value end the query or begin another parameter."""
    ((_, made),) = query_pairs("q", text, style="form", explode=True, allow_reserved=True)
    assert unquote(made) == text
    assert not set(made) & set("#&+[] ")


def test_reserved_characters_are_allowed_when_asked():
    """A URL or a list of fields can be sent as it is."""
    pairs = query_pairs("q", "a/b:c?d=(e),f", style="form", explode=True, allow_reserved=True)
    assert list(pairs) == [("q", "a/b:c?d=(e),f")]


@pytest.mark.parametrize(
    ("value", "explode", "text"),
    [
        ("a b", False, "a b"),
        ([1, None, 2.5], False, "1,2.5"),
        ({"a": 1, "b": False}, True, "a=1,b=false"),
        ({"a": 1, "b": False}, False, "a,1,b,false"),
        ([{"x": 1}], False, '{"x":1}'),
        (None, False, ""),
    ],
)
def test_headers_are_not_percent_encoded(value, explode, text):
    """A header's value is ``simple`` without encoding; what is nested is JSON."""
    assert header_text(value, explode=explode) == text
