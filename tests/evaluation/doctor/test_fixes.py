"""What can be fixed mechanically, and applying it."""

from dataclasses import replace

from hypothesis import given, settings, strategies as st

from agentkit import Library, ToolDefinition, open_store, tool
from agentkit.evaluation.doctor import FIXES, Catalogue, examine
from agentkit.evaluation.doctor.fixes import change_of
from agentkit.evolution import ToolManager
from agentkit.library.pins import pin_faults
from agentkit.tools.definition import Effects

TEXTS = st.sampled_from(
    [
        "Find a city.",
        "<p>Find a <b>city</b></p>",
        "Find\u200b a city by name. Find a city by name.",
        "Find a city.\n                by name",
        "Give the name of a city &amp; a country. <br>",
    ]
)
SCHEMAS = st.sampled_from(
    [
        {"type": "string", "title": "City"},
        {"enum": ["a", "b", "a"]},
        {"enum": [1, 2.5]},
        {"type": "object", "properties": {"x": {"enum": [True]}}, "required": ["x", "y"]},
        {"type": "array", "items": {"title": "Items", "enum": ["a", "a"]}},
        {"anyOf": [{"enum": ["a", "a"]}, {"type": "null"}]},
    ]
)


@st.composite
def definitions(draw):
    """Tools with something to fix."""
    properties = {
        name: {**draw(SCHEMAS), "description": draw(TEXTS)}
        for name in draw(st.lists(st.sampled_from(["city", "x"]), unique=True))
    }
    schema = {"type": "object", "properties": properties, "required": ["city"], "$schema": "x"}
    return ToolDefinition.from_schema("find_city", draw(TEXTS), schema)


FIXABLE = [
    *("invisible", "markup", "repeated_sentence", "ghost_required", "generated_titles"),
]


def _fixable(definition):
    """What can be fixed in one tool."""
    return examine(Catalogue.of([definition]), codes=FIXABLE)


@settings(deadline=None)
@given(definitions())
def test_applying_a_proposal_removes_its_finding(definition):
    """For every finding that can be fixed, the fixed tool does not have it."""
    for finding in _fixable(definition).findings:
        if finding.proposal is None:
            continue
        code = finding.kind.code
        after = examine(Catalogue.of([finding.proposal.after]), codes=[code])
        assert after.findings == ()


@settings(deadline=None)
@given(definitions())
def test_fixing_comes_to_an_end(definition):
    """What one round of fixes uncovers the next one fixes; then there is nothing left."""
    for level in ("L1", "L2"):
        fixed = definition
        for _ in range(3):
            for proposal in _fixable(fixed).proposals(level):
                assert level == "L1" or proposal.saved >= 0
                fixed = proposal.after
        assert _fixable(fixed).proposals(level) == ()


@settings(deadline=None)
@given(definitions())
def test_words_and_contracts_are_kept_apart(definition):
    """A proposal of level L2 leaves the signature as it is; one of level L1 leaves the words."""
    checkup = _fixable(definition)
    for proposal in checkup.proposals("L2"):
        assert proposal.after.signature == definition.signature
    for proposal in checkup.proposals("L1"):
        assert proposal.after.description == definition.description


@settings(deadline=None)
@given(definitions())
def test_each_fix_is_idempotent(definition):
    """A fix finds nothing to do after itself."""
    for fix in FIXES.values():
        once = fix.apply(definition)
        assert fix.apply(once) == once


def test_a_text_is_never_fixed_away(a_tool):
    """Where nothing would be left, the text stays."""
    definition = a_tool(text="<br><br>")
    assert FIXES["drop_markup"].apply(definition) == definition


def test_proposals_are_applied_as_one_change(a_tool):
    """A store takes them, the history says why, and a second look finds nothing."""
    store = open_store("memory:")
    library = Library([a_tool("find", "<b>Find</b> a city by name."), a_tool("other")])
    proposals = examine(Catalogue.of(library.definitions)).proposals("L2")
    first = change_of(library, proposals, proposal_id="p", author="me")
    store.commit(replace(first, upserts=library.definitions, proposal_id="o"), expected_version=0)
    change = change_of(store.load(), proposals, proposal_id="p", author="me")
    assert store.commit(change, expected_version=1) == 2
    assert store.load()["find"].definition.description.summary == "Find a city by name."
    assert store.history("find")[-1].reason == "doctor: drop HTML tags"
    assert examine(Catalogue.of(store.load().definitions)).proposals("L2") == ()


def test_what_changed_since_is_left_alone(a_tool):
    """A proposal for another definition than the library holds is not applied."""
    proposals = examine(Catalogue.of([a_tool("find", "<b>Find</b> it, please.")])).proposals("L2")
    assert change_of(Library([a_tool("find", "Written anew.")]), proposals, proposal_id="p") is None
    assert change_of(Library(), proposals, proposal_id="p") is None


def test_pins_move_along():
    """A composite above a fixed tool is pinned to what the tool has become."""

    @tool(effects=Effects.pure())
    def double(x: float) -> float:
        """<b>Twice</b> a number, that is, the number and itself."""
        return 2 * x

    manager = ToolManager(open_store("memory:"), tools=[double])
    manager.register([double])
    manager.insert(
        "@composite(examples=[{'arguments': {'x': 1}, 'result': 4}, "
        "{'arguments': {'x': 3}, 'result': 12}])\n"
        "def quadruple(x: float) -> float:\n    'Four times a number.'\n"
        "    return double(double(x))"
    )
    library = manager.library
    assert "quadruple" in library
    proposals = examine(Catalogue.of(library.definitions)).proposals("L2")
    change = change_of(library, proposals, proposal_id="p")
    assert [one.name for one in change.upserts] == ["double", "quadruple"]
    assert pin_faults(library.with_tools(change.upserts)) == ()


def test_a_proposal_is_a_change_of_its_own(a_tool):
    """One proposal can be committed alone."""
    definition = a_tool("find", "<b>Find</b> a city by name.")
    (proposal,) = examine(Catalogue.of([definition])).proposals("L2")
    change = proposal.change("p1", author="me")
    assert change.upserts == (proposal.after,)
    assert proposal.to_json()["before"] == definition.to_json()
