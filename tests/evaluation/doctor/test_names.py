"""Names that stand in each other's way."""

import pytest

NAMES = ["same_name", "alike_names", "generic_name", "reserved_name"]


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["get_user", "getUser"], "alike_names"),
        (["get.user", "get_user"], "alike_names"),
        (["GET_USER", "get_user"], "alike_names"),
        (["get_user", "get_users"], "alike_names"),
        (["search", "search_flights", "search_hotels", "search_mail"], "generic_name"),
        (["sum"], "reserved_name"),
        (["class"], "reserved_name"),
        (["null"], "reserved_name"),
        (["web_search"], "reserved_name"),
    ],
)
def test_names_in_the_way(a_tool, look, names, code):
    """Each way of being in the way has its code."""
    assert [one.kind.code for one in look(*map(a_tool, names), codes=NAMES)] == [code]


@pytest.mark.parametrize(
    "names",
    [
        ["get_user", "get_order"],
        ["search", "search_flights"],
        ["get_weather", "get_weather_forecast", "get_weather_history", "get_weather_map"],
        ["search_web", "print", "class_list"],
        ["get_gene_functions", "get_genes_by_function"],
        ["读取", "写入"],
    ],
)
def test_names_that_are_fine(a_tool, look, names):
    """Names that begin alike are how catalogues are made."""
    assert look(*map(a_tool, names), codes=NAMES) == []


def test_one_name_from_several_servers(a_tool, look):
    """Each gets a name of its own, and the finding says what they came in as."""
    tools = [a_tool("search", f"Search {what} by words.") for what in ("mails", "files", "songs")]
    found = look(*tools, codes=["same_name"])
    assert [one.tools for one in found] == [("search", "search__2", "search__3")]
    assert "'search'" in found[0].what
