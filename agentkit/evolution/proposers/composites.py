"""Composites that a model writes from episodes that went well (CoCoDA, Algorithm 1).

The prompt serves the purpose of the paper's prompt D.1 and is written anew: our copy of the paper
lists its purpose and inputs, not its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from string import Template
from typing import Any

from agentkit.composites.composite import program_from_json
from agentkit.composites.language import BUILTINS, METHODS, is_dotted, render, written
from agentkit.composites.problems import READING_LIMITS
from agentkit.composites.source import compose
from agentkit.episodes import Episode
from agentkit.errors import CompositeError, SourceProblem
from agentkit.evolution.proposal import Observations, PassedOver, Proposal
from agentkit.evolution.proposers.streams import Prompt, shown
from agentkit.evolution.trajectories import is_success
from agentkit.library.library import Library
from agentkit.messages import AssistantMessage, SystemMessage, Usage, UserMessage
from agentkit.models.base import ChatModel, MeteredModel, ModelRequest, ModelSettings
from agentkit.retrieval.cards import first_sentence
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.patterns import json_line

_SETTINGS = ModelSettings(temperature=0.2, top_p=0.95, max_tokens=4096)
"""The paper's settings for prompts other than rollouts (Appendix D and Table 4)."""

_PROMPT = "composite_v1"
_LEAST_CALLS = 2
_MOST_REPAIRS = 3  # of one function
_MOST_TOOLS = 40
_LONGEST_WHY = 1_000


class CompositeStream:
    """Suggests composites that a model writes from episodes that went well.

    Each episode is one request: which steps of the solved task are worth a tool of their own? Those
    with fewer than two successful calls of tools in the library have nothing to compose. Each
    function in the answer is parsed, and sent back with what is wrong, where, and what to write
    instead, until it is in the language. Text is never run.

    A composite is a new tool, so its proposal has no base; it is decided by InsertTool
    (``ToolManager.insert``), and goes through no canary, as nobody calls it yet.

    Args:
        model: The teacher.
    """

    def __init__(self, model: ChatModel) -> None:
        self._model = MeteredModel(model)
        self._author = Prompt.shipped(_PROMPT).author(model)

    @property
    def name(self) -> str:
        """``composite``, with the model that is asked."""
        return f"composite:{self._model.name}"

    @property
    def usage(self) -> Usage:
        """What asking the model has cost so far."""
        return self._model.usage

    async def propose(self, observations: Observations) -> Sequence[Proposal]:
        """Each function that the model writes and that is in the language; others are passed over.

        Raises:
            ModelError: The model could not answer.
        """
        library, found = observations.library, list[Proposal]()
        for episode in filter(is_success, filter(observations.is_fresh, observations.episodes)):
            request = _request(episode, library)
            if request is None:
                continue
            response = await self._model.complete(request)
            for source in dict.fromkeys(code_blocks(response.message.text)):
                written = await self._written(source, request, library, episode.episode_id)
                if isinstance(written, Proposal):
                    found.append(written)
                else:
                    observations.pass_over(written)
        return found

    async def _written(
        self, source: str, request: ModelRequest, library: Library, episode_id: str
    ) -> Proposal | PassedOver:
        """What a function says once it is in the language; or what is wrong with its last text."""
        for attempt in range(1, _MOST_REPAIRS + 2):
            try:
                definition = compose(source, tools=library.tools)
            except CompositeError as error:
                problems = error.problems
            else:
                return Proposal.of(
                    None,
                    definition,
                    stream="composite",
                    author=self._author,
                    reason=f"written after {attempt} attempts, from an episode that went well",
                    evidence=(episode_id,),
                )
            repaired = None
            if attempt <= _MOST_REPAIRS:
                repaired = await self._repaired(source, problems, request)
            if repaired is None:
                break
            source = repaired
        why = f"a function that {self._author.name} wrote: {'; '.join(map(str, problems))}"
        return PassedOver(tool=self.name, reason="unreadable", why=why[:_LONGEST_WHY])

    async def _repaired(
        self, source: str, problems: Iterable[SourceProblem], request: ModelRequest
    ) -> str | None:
        """The next text of the author, who sees the last one and what is wrong with it.

        None where the model gives up, or writes the same again.
        """
        answer = AssistantMessage(text=f"```python\n{source.rstrip()}\n```")
        wrong = "\n".join(f"- {shown(str(one))}" for one in problems)
        words = UserMessage(
            text=f"This function cannot be used:\n{wrong}\nWrite the whole function again with "
            "all of this corrected, in one ```python block. Keep what it is for. If that cannot "
            "be done, answer NOTHING."
        )
        messages = (*request.messages, answer, words)
        response = await self._model.complete(replace(request, messages=messages))
        blocks = code_blocks(response.message.text)
        return blocks[0] if blocks and blocks[0] != source else None


def _request(episode: Episode, library: Library) -> ModelRequest | None:
    succeeded = [
        result.name
        for result in episode.results
        if result.status == "ok" and result.name in library
    ]
    if len(succeeded) < _LEAST_CALLS:
        return None
    tools = _shown_tools(dict.fromkeys(succeeded), library)
    names = {tool.name: tool.name if is_dotted(tool.name) else written(tool.name) for tool in tools}
    cards = "\n".join(_card(tool, names[tool.name]) for tool in tools)
    question = (
        f"# Tools\n{cards}\n\n# Task\n{shown(episode.request)}\n\n"
        f"# How it was solved\n{_trajectory(episode, names)}\n\n"
        f"# Answer that was accepted\n{shown(episode.output)}\n"
    )
    system = Template(Prompt.shipped(_PROMPT).text).substitute(
        functions=", ".join(sorted(BUILTINS)), methods=", ".join(sorted(METHODS))
    )
    messages = (SystemMessage(text=system), UserMessage(text=question))
    return ModelRequest(messages=messages, settings=_SETTINGS)


def _shown_tools(called: Iterable[str], library: Library) -> tuple[ToolDefinition, ...]:
    """The tools that the task called, and those made of them, as far as there is room."""
    used = [library[name].definition for name in called]
    names = {definition.name for definition in used}
    made_of_them = [
        definition
        for definition in library.definitions
        if definition.name not in names
        and names.intersection(child.name for child in definition.signature.children)
    ]
    return tuple([*used, *made_of_them][:_MOST_TOOLS])


def _card(tool: ToolDefinition, name: str) -> str:
    """One tool as a line of Python, and what it requires."""
    required = set(tool.signature.required)
    parameters = ", ".join(
        f"{_keyword(parameter)}: {python_type(schema)}{'' if parameter in required else ' = ...'}"
        for parameter, schema in tool.signature.properties.items()
    )
    line = f"{name}({parameters}) -> {python_type(tool.signature.result)}"
    line += f"  # {shown(first_sentence(tool.text))}" if tool.text else ""
    conditions = "; ".join((*tool.specification.pre, *tool.specification.text))
    return f"{line}\n    requires: {shown(conditions)}" if conditions else line


def _trajectory(episode: Episode, names: Mapping[str, str]) -> str:
    """The calls that succeeded: a failed attempt is no step of the solution."""
    lines: list[str] = []
    for turn in episode.turns:
        for call, result in turn.steps():
            if result is not None and result.status == "ok":
                given = (f"{_keyword(k)}={shown(v)}" for k, v in call.arguments.items())
                name = names.get(call.name) or shown(call.name)
                step = f"{len(lines) + 1}. {name}({', '.join(given)})"
                lines.append(f"{step} -> {shown(result.value)}")
    return "\n".join(lines)


def _keyword(name: str) -> str:
    """The name of a parameter: as Python has it, or else as data."""
    return name if name.isascii() and name.isidentifier() else shown(name)


_FENCED = re.compile(r"^[ \t]*```[^\n]*\n(.*?)(?:^[ \t]*```|\Z)", re.MULTILINE | re.DOTALL)
_LOOKS_LIKE_CODE = re.compile(r"^(?:@composite\b|(?:async[ ]+)?def[ ])", re.MULTILINE)


def code_blocks(answer: str) -> tuple[str, ...]:
    r"""The fenced blocks of an answer; the answer itself when it is bare code.

    Example:
        >>> code_blocks("Here:\n```python\ndef f(): ...\n```")
        ('def f(): ...\n',)
    """
    texts = _FENCED.findall(answer) or [answer]
    return tuple(text for text in texts if _LOOKS_LIKE_CODE.search(text))


# --- A composite as the text of a function -------------------------------------------------------


def source_of(definition: ToolDefinition) -> str:
    """The program of a composite as a Python function that composes to the same program.

    Raises:
        CompositeError: The body is no program.
    """
    program = program_from_json(definition.body or {}, limits=READING_LIMITS)
    signature = definition.signature
    types = {name: python_type(schema) for name, schema in signature.properties.items()}
    returns = "" if signature.result is None else python_type(signature.result)
    return render(program, definition.name, annotations=types, returns=returns)


_PYTHON_TYPES: Mapping[str, str] = {
    "boolean": "bool",
    "integer": "int",
    "null": "None",
    "number": "float",
    "object": "dict",
    "string": "str",
}


def python_type(schema: Any) -> str:
    """A schema as a Python annotation; ``object`` for one that has none.

    Example:
        >>> python_type({"type": "array", "items": {"type": "number"}})
        'list[float]'
    """
    if not isinstance(schema, Mapping):
        return "object"
    branches = schema.get("anyOf") or schema.get("oneOf")
    if branches:
        return " | ".join(dict.fromkeys(map(python_type, branches)))
    kind, form = schema.get("type"), str(schema.get("format", ""))
    if kind == "string" and form.startswith("Expr["):
        return f"Expr[{json_line(form[5:-1])}]"
    if isinstance(kind, list):
        return " | ".join(python_type({**schema, "type": one}) for one in kind)
    if kind == "array":
        return f"list[{python_type(schema['items'])}]" if schema.get("items") else "list"
    return _PYTHON_TYPES.get(kind or "", "object")
