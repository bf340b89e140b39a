"""What tools cost, and where it goes."""

import json

from hypothesis import given, settings, strategies as st

from agentkit import ToolDefinition
from agentkit.evaluation.doctor import FIELDS, Catalogue, examine
from agentkit.evaluation.doctor.weights import weigh
from agentkit.retrieval import estimate_tokens, schema_text

WORDS = st.text(max_size=30)
NAMES = st.text(min_size=1, max_size=8).filter(str.strip)
LEAVES = st.fixed_dictionaries(
    {"type": st.sampled_from(["string", "integer"])},
    optional={"description": WORDS, "enum": st.lists(WORDS, min_size=1, max_size=3)},
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: (
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, max_size=3)}
        )
        | st.fixed_dictionaries({"type": st.just("array"), "items": inner})
    ),
    max_leaves=5,
)


@settings(deadline=None)
@given(NAMES, WORDS, st.dictionaries(NAMES, SCHEMAS, max_size=3))
def test_fields_add_up_to_the_whole(name, text, properties):
    """What the fields cost together is what the schema as sent costs, and none is below zero."""
    schema = {"type": "object", "properties": properties}
    definition = ToolDefinition.from_schema(name, text, schema)
    weight = weigh(definition, estimate_tokens)
    assert sum(weight.by_field) == weight.tokens == estimate_tokens(schema_text(definition))
    assert min(weight.by_field) >= 0


def test_tokens_go_to_the_field_that_holds_them(a_tool):
    """A long text weighs on texts, a long enum on allowed values, depth on the nested schema."""
    definition = a_tool(
        properties={
            "told": {"type": "string", "description": "word " * 200},
            "chosen": {"enum": [f"value {number}" for number in range(80)]},
            "deep": {
                "type": "object",
                "properties": {f"part_{number}": {"type": "string"} for number in range(40)},
            },
        }
    )
    by_field = dict(zip(FIELDS, weigh(definition, estimate_tokens).by_field, strict=True))
    assert by_field["parameter texts"] > 200
    assert by_field["allowed values"] > 200
    assert by_field["nested schema"] > 100
    assert by_field["name"] + by_field["parameter names"] < 20


def test_any_counter_is_kept_to(a_tool):
    """With another counter of tokens the whole is what that counter says."""
    definition = a_tool()
    assert weigh(definition, len).tokens == len(schema_text(definition))


def test_heavy_tools_are_told_with_where_their_tokens_go(a_tool, look):
    """A tool above the default budget can never be offered; one above a third of it is heavy."""
    small, heavy = a_tool("small"), a_tool("heavy", "word " * 600)
    huge = a_tool("huge", properties={"p": {"type": "string", "description": "word " * 2000}})
    found = look(small, heavy, huge, codes=["heavy", "unaffordable"])
    assert [(one.kind.code, one.tools) for one in found] == [
        ("unaffordable", ("huge",)),
        ("heavy", ("heavy",)),
    ]
    assert "in parameter texts" in found[0].what
    assert "in description" in found[1].what


def test_a_checkup_adds_up_what_all_tools_cost(a_tool):
    """The sum over the tools is the sum over the fields, and the heaviest come first."""
    checkup = examine(Catalogue.of([a_tool("small"), a_tool("large", "word " * 50)]))
    assert checkup.tokens == sum(checkup.tokens_by_field.values())
    assert [weight.tool for weight in checkup.weights] == ["large", "small"]
    told = json.loads(json.dumps(checkup.to_json()))
    assert told["weights"][0]["tokens"] == checkup.weights[0].tokens
