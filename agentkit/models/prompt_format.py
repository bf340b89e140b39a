"""Tools and calls as text, for models that were never given a place for them.

Two formats: ``python`` is ToolACE-R's (Figure 5 of the paper), ``json`` suits engines that can
decode under a grammar. ``parse_calls`` reads both, and much that lies between.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from agentkit.messages import JsonObject, ToolCall, ToolMessage
from agentkit.models.base import described_tool
from agentkit.models.call_parser import ParsedCalls, parse_calls
from agentkit.models.grammar import ANSWER, CALLS
from agentkit.models.literals import LiteralReader, UnreadableError
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.patterns import written_out

__all__ = [
    "ParsedCalls",
    "PromptFormat",
    "parse_answer",
    "parse_calls",
    "render_answer",
    "render_calls",
    "render_result",
    "render_system_prompt",
    "render_tools",
]

PromptFormat: TypeAlias = Literal["python", "json"]

_MAX_TYPE_DEPTH = 6
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_CONSTANTS = {True: "True", False: "False", None: "None"}

_PYTHON_PROMPT = """\
You are an expert in composing functions. You are given a question and a set of possible \
functions. Based on the question, you will need to make one or more function/tool calls to achieve \
the purpose. If none of the function can be used, point it out. If the given question lacks the \
parameters required by the function, also point it out. You should only return the tool call in \
tools call sections.

If you decide to invoke any of the function(s), you MUST put it in the format of:
[func_name1(params_name1=value1, params_name2=value2,...), func_name2(params)]

You should not include any other text in the response. Here is a list of functions in JSON format \
that you can invoke:
{tools}
"""

_JSON_PROMPT = """\
You are a function calling assistant. Choose the function that answers the question and fill in \
its arguments from the question. Answer with JSON only, in the form {form}.{otherwise}
Functions:
{tools}
"""

_CALL_FORM = '{"calls": [{"name": "function_name", "arguments": {"parameter": value}}]}'
_MATCHING = " that matches this JSON Schema: {schema}"
_ANSWER_START = re.compile(rf'\s*\{{\s*"{ANSWER}"\s*:\s*')


def render_calls(calls: Sequence[ToolCall], format: PromptFormat = "python") -> str:  # noqa: A002 - the word of the field
    """Calls as a model would write them; ``parse_calls`` gives them back.

    Example:
        >>> call = ToolCall(call_id="1", name="f", arguments={"a": 1, "b": [True, None]})
        >>> render_calls([call])
        '[f(a=1, b=[True, None])]'
        >>> render_calls([call], "json")
        '{"calls": [{"name": "f", "arguments": {"a": 1, "b": [true, null]}}]}'
    """
    if format == "python":
        return f"[{', '.join(map(_python_call, calls))}]"
    return _json({CALLS: [_json_call(call) for call in calls]})


def render_result(message: ToolMessage) -> str:
    """The result of a call, as a user message."""
    return _set_in(f"Result of {message.name}: {message.text}")


def render_tools(
    tools: Sequence[ToolDefinition],
    format: PromptFormat = "python",  # noqa: A002 - the word of the field
    *,
    examples: int = 0,
) -> str:
    """The tools, in the order given.

    For the ``python`` format as ToolACE-R has them: whole definitions as JSON, one a line. For
    ``json`` as cards, which take two thirds of the tokens; a small model reads them better, too.

    Example:
        >>> schema = {
        ...     "properties": {"city": {"type": "string", "description": "Where."}, "days": {}},
        ...     "required": ["city"],
        ... }
        >>> weather = ToolDefinition.from_schema("weather", "Forecast.", schema)
        >>> print(render_tools([weather], "json"))
        weather(city: string, days?: any): Forecast.
          city: Where.
    """
    if format == "python":
        return "\n".join(_json(_function(tool, examples)) for tool in tools)
    return "\n".join(_card(tool, examples) for tool in tools)


def render_system_prompt(
    tools: Sequence[ToolDefinition],
    format: PromptFormat,  # noqa: A002 - the word of the field
    *,
    is_required: bool = False,
    is_constrained: bool = False,
    output_schema: JsonObject | None = None,
    examples: int = 0,
) -> str:
    """The system prompt that offers ``tools``.

    Args:
        tools: What may be called.
        format: How calls are to be written.
        is_required: Whether an answer without a call is ruled out.
        is_constrained: Whether the answer is held to ``call_schema``, which puts text into JSON.
        output_schema: What an answer without a call has to match.
        examples: How many worked calls of each tool are shown.
    """
    matching = "" if output_schema is None else _MATCHING.replace("{schema}", _json(output_schema))
    offered = render_tools(tools, format, examples=examples)
    if format == "python":
        rest = f"If no function is needed, answer with JSON{matching}\n" if matching else ""
        return _PYTHON_PROMPT.replace("{tools}", offered) + rest
    if is_required:
        otherwise = ""
    elif is_constrained:
        otherwise = f' If no function fits, answer {{"{ANSWER}": ...}} with your answer{matching}.'
    else:
        text = f"JSON{matching}" if matching else "text"
        otherwise = f" If no function fits, answer with {text}."
    # Tools come last in the replacing: their words may hold braces.
    prompt = _JSON_PROMPT.replace("{form}", _CALL_FORM).replace("{otherwise}", otherwise)
    return prompt.replace("{tools}", offered)


def render_answer(text: str) -> str:
    """An answer without calls, in the form that ``call_schema`` asks for."""
    return _json({ANSWER: text})


def parse_answer(text: str) -> str:
    """The answer that a text without calls holds: the value of ``{"answer": ...}``, or the text.

    An answer that is not a string is given as JSON; one that was cut short, as far as it goes.

    Example:
        >>> parse_answer('{"answer": "It is 4 deg')
        'It is 4 deg'
        >>> parse_answer('{"answer": {"degrees": 4}}')
        '{"degrees": 4}'
    """
    match = _ANSWER_START.match(text)
    if match is None:
        return text
    for candidate in (text, text.rstrip("\\") + '"'):
        try:
            value = LiteralReader(candidate, match.end()).value()
        except UnreadableError:
            continue
        return value if isinstance(value, str) else _json(value)
    return text


def _function(tool: ToolDefinition, examples: int) -> JsonObject:
    text = described_tool(tool, examples)
    return {"name": tool.name, "description": text, "parameters": tool.parameters_schema}


def _card(tool: ToolDefinition, examples: int) -> str:
    parameters = tool.parameters_schema.get("properties", {})
    required = tool.signature.required
    names = (
        f"{name}{'' if name in required else '?'}: {_type(schema)}"
        for name, schema in parameters.items()
    )
    lines = [f"{tool.name}({', '.join(names)}): {tool.text}"]
    lines += [f"  {path}: {text}" for path, text in tool.description.parameters.items()]
    lines += [f"  Example: {_json(arguments)}" for arguments in tool.shown_examples(examples)]
    return "\n".join(map(_set_in, lines))


def _set_in(text: str) -> str:
    """A text whose further lines are set in, so that none begins as ours; nothing stays unseen."""
    return written_out("\n    ".join(text.splitlines()))


def _type(schema: Any, depth: int = 0) -> str:
    """A schema in a word or two: ``string``, ``"a"|"b"``, ``[integer]``, ``{x: number}``."""
    if not isinstance(schema, Mapping) or depth > _MAX_TYPE_DEPTH:
        return "any"
    if "const" in schema or isinstance(schema.get("enum"), list):
        return "|".join(map(_json, schema.get("enum", [schema.get("const")])))
    alternatives = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(alternatives, list):
        return "|".join(dict.fromkeys(_type(part, depth + 1) for part in alternatives))
    kind = schema.get("type", "any")
    if kind == "array":
        return f"[{_type(schema.get('items'), depth + 1)}]"
    properties = schema.get("properties")
    if kind == "object" and isinstance(properties, Mapping) and properties:
        inner = (f"{name}: {_type(part, depth + 1)}" for name, part in properties.items())
        return f"{{{', '.join(inner)}}}"
    return kind if isinstance(kind, str) else "|".join(map(str, kind))


def _python_call(call: ToolCall) -> str:
    if call.malformed is not None:
        return call.malformed
    return f"{call.name}({', '.join(_python_argument(*item) for item in call.arguments.items())})"


def _python_argument(name: str, value: Any) -> str:
    if _IDENTIFIER.fullmatch(name):
        return f"{name}={_python(value)}"
    return f"**{{{_json(name)}: {_python(value)}}}"


def _python(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_json(key)}: {_python(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_python, value))}]"
    if value is None or isinstance(value, bool):
        return _CONSTANTS[value]
    return _json(value)


def _json_call(call: ToolCall) -> JsonObject:
    arguments = dict(call.arguments) if call.malformed is None else call.malformed
    return {"name": call.name, "arguments": arguments}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
