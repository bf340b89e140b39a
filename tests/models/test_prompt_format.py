"""Calls written into a prompt are read back as they were, in both formats."""

import json

import pytest
from hypothesis import given, settings, strategies as st

from agentkit.messages import ToolCall, ToolMessage
from agentkit.models.prompt_format import (
    parse_answer,
    parse_calls,
    render_answer,
    render_calls,
    render_result,
    render_system_prompt,
    render_tools,
)
from agentkit.tools.definition import ToolDefinition

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}([.\-][A-Za-z0-9_]{1,8}){0,2}", fullmatch=True)
CALLS = st.lists(
    st.tuples(NAMES, st.dictionaries(st.text(), JSON, max_size=4)), min_size=1, max_size=4
)


def tool(name="get_weather", description="The weather in a city."):
    parameters = {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "Which {one}."}},
        "required": ["city"],
    }
    return ToolDefinition.from_schema(name, description, parameters)


@pytest.mark.parametrize("style", ["python", "json"])
@settings(max_examples=60)
@given(written=CALLS)
def test_rendered_calls_are_read_back(style, written):
    """Any JSON arguments under any keys survive the way into text and back."""
    calls = tuple(
        ToolCall(call_id=f"call_{number}", name=name, arguments=arguments)
        for number, (name, arguments) in enumerate(written, start=1)
    )
    tools = [ToolDefinition(name=name) for name in dict.fromkeys(name for name, _ in written)]
    for offered in (tools, ()):
        parsed = parse_calls(render_calls(calls, style), offered)
        if offered or not any(name.startswith(("functions.", "tools.")) for name, _ in written):
            assert parsed.calls == calls
            assert parsed.text == ""


@given(value=JSON)
def test_rendered_json_calls_are_json(value):
    """The JSON format is JSON that any other parser reads, too."""
    call = ToolCall(call_id="1", name="f", arguments={"x": value})
    decoded = json.loads(render_calls([call], "json"))
    assert decoded == {"calls": [{"name": "f", "arguments": {"x": value}}]}


def test_a_malformed_call_is_shown_as_it_came():
    """The model sees what it wrote, so that it can mend it."""
    call = ToolCall(call_id="1", name="f", malformed="f(a=b)")
    assert render_calls([call]) == "[f(a=b)]"
    assert json.loads(render_calls([call], "json"))["calls"][0]["arguments"] == "f(a=b)"


def test_the_python_prompt_is_that_of_the_paper():
    """ToolACE-R's wording, its format line, and the functions as JSON."""
    prompt = render_system_prompt([tool()], "python")
    assert prompt.startswith("You are an expert in composing functions.")
    assert (
        "[func_name1(params_name1=value1, params_name2=value2,...), func_name2(params)]" in prompt
    )
    assert '"name": "get_weather"' in prompt


@pytest.mark.parametrize("style", ["python", "json"])
def test_the_same_tools_give_the_same_prompt(style):
    """Prompt caches hold: equal tools in equal order are equal text, whatever their words hold."""
    tools = [tool("b", "Answers {form} and {tools}."), tool("a")]
    prompt = render_system_prompt(tools, style)
    assert prompt == render_system_prompt(list(tools), style)
    assert prompt.index("Answers {form} and {tools}.") < prompt.index(
        "a(" if style == "json" else '"a"'
    )
    assert "Which {one}." in prompt


def test_the_json_prompt_says_when_text_is_allowed():
    """Required calls leave no way out; otherwise the form of another answer is named."""
    required = render_system_prompt([tool()], "json", is_required=True)
    free = render_system_prompt([tool()], "json")
    constrained = render_system_prompt([tool()], "json", is_constrained=True)
    assert "answer" not in required.replace("answers", "").replace("Answer", "")
    assert "with text" in free
    assert '{"answer": ' in constrained


@pytest.mark.parametrize("style", ["python", "json"])
def test_an_output_schema_is_part_of_the_prompt(style):
    """A model that may answer in JSON is told the shape."""
    schema = {"type": "object", "properties": {"total": {"type": "number"}}}
    prompt = render_system_prompt([tool()], style, output_schema=schema)
    assert json.dumps(schema) in prompt


def test_tools_are_one_line_each_in_order():
    """Python's format lists whole definitions as JSON lines."""
    lines = render_tools([tool("b"), tool("a")], "python").splitlines()
    assert [json.loads(line)["name"] for line in lines] == ["b", "a"]
    assert json.loads(lines[0])["parameters"]["required"] == ["city"]


def test_a_result_names_its_tool():
    """Results travel as something that is said to the model."""
    message = ToolMessage(call_id="1", name="get_weather", text="4 degrees")
    assert render_result(message) == "Result of get_weather: 4 degrees"


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_answers_are_read_back(text):
    """Text put into the answer object comes out unchanged."""
    assert parse_answer(render_answer(text)) == text


def test_answers_that_are_data_or_cut_short():
    """Data come as JSON, half an answer as far as it goes, other text as it is."""
    assert parse_answer('{"answer": {"total": 4, "ok": true}}') == '{"total": 4, "ok": true}'
    assert parse_answer('{"answer": "It is 4 deg') == "It is 4 deg"
    assert parse_answer('{"answer": "It is \\') == "It is "
    assert parse_answer('{"total": 4}') == '{"total": 4}'
    assert parse_answer('{"answer": }') == '{"answer": }'
