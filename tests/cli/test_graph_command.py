"""``agentkit tools graph``, and what ``show`` and ``list`` tell of composites."""

import json
import re
from dataclasses import replace

import pytest

from agentkit import Library, ToolDefinition, open_store
from agentkit.composites.codec import program_to_json
from agentkit.composites.language import Call, ListLiteral, Program, Return
from agentkit.composites.source import compose
from agentkit.library import LibraryChange
from agentkit.testing import primitive_library
from agentkit.tools.definition import Description

GROSS = """def gross_total(net: float, rate: float) -> float:
    "A net amount with tax."
    return add(net, mul(net, rate))
"""
BILL = """def bill(net: float, rate: float, rebate: float) -> float:
    "What a customer pays."
    return sub(gross_total(net, rate), rebate)
"""


@pytest.fixture
def keep(store_url):
    """Puts definitions into the store in one version."""

    def put(*definitions):
        store = open_store(store_url)
        version = len(store.versions())
        change = LibraryChange(proposal_id=f"p{version}", upserts=tuple(definitions))
        store.commit(change, expected_version=version)
        store.close()

    return put


@pytest.fixture
def shop(keep):
    """Three primitives that are used, one that is not, and bill over gross_total."""
    primitives = primitive_library()
    library = Library(primitives[name] for name in ("add", "mul", "sub", "mean"))
    for text in (GROSS, BILL):
        library = library.with_tools([compose(text, library.tools)])
    keep(*library.definitions)
    return library


def composite(name, *children):
    """A composite that calls ``children`` one after the other, without pins."""
    items = tuple(Call(child=child) for child in children)
    program = Program(parameters=(), body=(Return(value=ListLiteral(items=items)),))
    return ToolDefinition(name=name, body=program_to_json(program))


def test_the_tree_shows_what_everything_is_made_of(invoke, shop):
    """Composites and their closure, with depth and saved calls; unused primitives stay out."""
    assert invoke("tools", "graph", "--format", "text").stdout == (
        "bill  (depth 2, saves 2 calls)\n"
        "├── sub\n"
        "└── gross_total  (depth 1, saves 1 call)\n"
        "    ├── add\n"
        "    └── mul\n"
    )


def test_one_tool_downwards_and_upwards(invoke, shop):
    """NAME chooses a part, --depth cuts it, --up turns it round."""
    show = ["tools", "graph", "--format", "text"]
    assert invoke(*show, "gross_total").stdout.splitlines()[1:] == ["├── add", "└── mul"]
    cut = invoke(*show, "bill", "--depth", "1").stdout
    assert "gross_total  (depth 1, saves 1 call, 2 below)" in cut
    assert "mul" not in cut
    up = invoke(*show, "mul", "--up").stdout
    assert ("bill" in up, "sub" in up, "mul" in up) == (True, False, True)
    assert invoke(*show, "mean").stdout == "mean\n"


def test_a_shared_composite_is_spelled_out_once(invoke, keep):
    """The second time it says where to look."""
    keep(
        ToolDefinition(name="p"),
        composite("low", "p"),
        composite("a", "low"),
        composite("b", "low"),
    )
    lines = invoke("tools", "graph", "--format", "text").stdout.splitlines()
    assert (
        sum(
            line.endswith(
                "── p  ! the program of 'low' calls 'p', but its signature does not pin it"
            )
            for line in lines
        )
        == 1
    )
    assert sum("low  (see above)" in line for line in lines) == 1


def test_dot_has_a_shape_for_each_kind(invoke, shop):
    """Composites and primitives differ in shape, and each call is an edge."""
    dot = invoke("tools", "graph", "--format", "dot").stdout
    assert 'n4 [label="bill\\ndepth 2, saves 2 calls", shape=box, style="rounded,filled"' in dot
    assert 'n0 [label="add", shape=ellipse];' in dot
    assert "n4 -> n3;" in dot


def test_mermaid_goes_to_a_pipe(invoke, shop):
    """Without a terminal the default is Mermaid: shapes and classes by kind, an arrow a call."""
    told = invoke("tools", "graph").stdout
    assert told.startswith("flowchart TD\n")
    assert 'n4("bill<br/>depth 2, saves 2 calls")' in told
    assert 'n0(["add"])' in told
    assert told.count("-->") == 4
    assert "class n3,n4 composite" in told


def test_names_can_not_break_out_of_a_label(invoke, keep):
    """Quotes, brackets, backslashes and markup in a name are text in every format."""
    name = 'a"]; b --> c <img src=x> \\" \\N &amp; `#`'
    keep(ToolDefinition(name=name), composite("c", name))
    mermaid = invoke("tools", "graph").stdout
    label = re.search(r'n0\(\["(.*)"\]\)', mermaid)
    assert label
    plain = re.sub(r"#(\d+);", lambda found: chr(int(found[1])), label[1].replace("<br/>", " "))
    assert plain.replace(" ", "") == name.replace(" ", "")
    assert not set('"<>`') & set(label[1].replace("<br/>", ""))
    dot = invoke("tools", "graph", "--format", "dot").stdout
    for line in dot.splitlines():
        outside = re.sub(r'"(?:[^"\\]|\\.)*"', "", line)
        assert '"' not in outside
        assert "-->" not in outside


def test_a_broken_library_is_drawn_with_its_faults(invoke, shop, keep):
    """A changed child and a missing one are red and dashed; depths above are unknown."""
    mul = shop["mul"].definition
    keep(replace(mul, description=Description(summary="Other words.")), composite("x", "gone"))
    told = invoke("tools", "graph", "--format", "text").stdout
    assert "mul  ! 'gross_total' was made for 'mul' with digest" in told
    assert "x  (depth unknown)" in told
    assert "gone  (not in the library)" in told
    dot = invoke("tools", "graph", "--format", "dot").stdout
    assert (dot.count("->"), dot.count("style=dashed, tooltip")) == (5, 2)
    mermaid = invoke("tools", "graph").stdout
    assert "class n6 missing" in mermaid
    assert "linkStyle 1,4 stroke:#dc2626" in mermaid


def test_circles_are_drawn(invoke, keep):
    """Composites that call each other, or themselves, do not stop the picture."""
    keep(composite("a", "b"), composite("b", "c"), composite("c", "a"), composite("s", "s"))
    assert "c  (depth unknown)" in invoke("tools", "graph", "--format", "text").stdout
    for form in ("dot", "mermaid", "json"):
        assert invoke("tools", "graph", "--format", form).exit_code == 0


def test_json_has_nodes_and_edges(invoke, shop):
    """For programs: kinds, depths, sizes and faults."""
    found = json.loads(invoke("tools", "graph", "gross_total", "--format", "json").stdout)
    assert found["library_version"] == 1
    assert found["nodes"][2] == {
        "name": "gross_total",
        "kind": "composite",
        "depth": 1,
        "flat_size": 2,
        "saved_calls": 1,
    }
    assert found["edges"][0] == {"parent": "gross_total", "child": "add", "fault": None}


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("g.mmd", b"flowchart"),
        ("g.dot", b"digraph"),
        ("g.gv", b"digraph"),
        ("g.json", b"{"),
        ("g.txt", b"bill"),
        ("g.DOT", b"digraph"),
    ],
)
def test_the_suffix_chooses_the_format(invoke, shop, tmp_path, name, start):
    """--output alone is enough."""
    assert invoke("tools", "graph", "--output", name).exit_code == 0
    assert (tmp_path / name).read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("arguments", "status", "complaint"),
    [
        (["--output", "picture.bmp"], 2, "the suffix says nothing about the format"),
        (["--up"], 2, "give its NAME"),
        (["bil"], 2, "no tool named 'bil'"),
        (["--format", "gif"], 2, "Invalid value for '--format'"),
    ],
)
def test_misuse_is_explained(invoke, shop, arguments, status, complaint):
    """Each in one message, with its status."""
    result = invoke("tools", "graph", *arguments)
    assert result.exit_code == status
    assert complaint in result.stderr


def test_a_library_without_composites_says_so(invoke, keep):
    """There is nothing to draw, and that is no failure."""
    keep(ToolDefinition(name="p"))
    result = invoke("tools", "graph")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no composite yet" in result.stderr


def test_an_earlier_version_can_be_drawn(invoke, shop, keep):
    """--at looks at an old snapshot."""
    keep(composite("later", "add"))
    assert "later" not in invoke("tools", "graph", "--at", "1").stdout
    assert "later" in invoke("tools", "graph").stdout


# --- show and list --------------------------------------------------------------------------------


def test_show_prints_the_program_of_a_composite(invoke, shop):
    """Its place in the DAG, its pins, who uses it, and a source that composes to the same."""
    told = invoke("tools", "show", "gross_total").stdout
    assert "depth    1\n" in told
    assert "saves    1 call (one call of it stands for 2 primitive calls)" in told
    assert f"calls    add {shop['add'].definition.digest[:12]}\n" in told
    assert "used by  bill\n" in told
    source = told[told.index("def gross_total") :]
    again = compose(source, shop.without(["gross_total", "bill"]).tools)
    assert again.body == shop["gross_total"].definition.body
    assert again.signature == shop["gross_total"].definition.signature
    assert "def " not in invoke("tools", "show", "add").stdout


def test_show_survives_a_broken_composite(invoke, keep):
    """A body that is no program, a missing child and a huge flat size are told, not raised."""
    broken = ToolDefinition(name="broken", body={"format": 1, "kind": "Nothing"})
    doubling = [composite(f"c{n}", *[f"c{n - 1}"] * 2) for n in range(1, 61)]
    keep(broken, composite("x", "gone"), ToolDefinition(name="c0"), *doubling)
    assert "The body is no program" in invoke("tools", "show", "broken").stdout
    told = invoke("tools", "show", "x").stdout
    assert "depth    unknown: 'x' has no depth" in told
    assert "calls    gone not pinned  ! missing_child" in told
    assert "more than 2**60 primitive calls" in invoke("tools", "show", "c60").stdout


def test_list_marks_composites(invoke, as_json, shop):
    """A column tells of how many tools each is made; a library of primitives has no such column."""
    table = invoke("tools", "list").stdout
    assert re.search(r"gross_total +2 tools +net: number", table)
    assert "made of" not in invoke("tools", "list", "--match", "mul").stdout
    listed = {tool["name"]: tool["children"] for tool in as_json("tools", "list")}
    assert listed["bill"] == ["sub", "gross_total"]
    assert listed["add"] == []


def test_a_folder_that_is_not_there_is_misuse(invoke, shop):
    """The picture can not be written, and the reason is told."""
    result = invoke("tools", "graph", "--output", "nowhere/shop.dot")
    assert result.exit_code == 2
    assert "can not be written (No such file or directory)" in result.stderr
