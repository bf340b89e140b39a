"""Prompts of the model proposers: versioned files, filled in, and known by their hash."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from string import Template
from typing import Any

from agentkit.library.events import Author
from agentkit.messages import JsonObject, SystemMessage, UserMessage
from agentkit.models.base import ChatModel, ModelRequest, ModelSettings
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import rule_to_json

PROPOSER_SETTINGS = ModelSettings(temperature=0.2, max_tokens=2048)
"""How a proposer generates, unless told otherwise."""

_SYSTEM = "You write documentation of tools for language models. You answer in the form asked for."
_LONGEST_VALUE = 600
_LONGEST_TEXT = 2_000


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """One prompt as a text with places for data.

    Attributes:
        name: With its version, such as ``feedback_v1``; the file is ``prompts/<name>.txt``.
        text: The text.
    """

    name: str
    text: str

    @classmethod
    def shipped(cls, name: str) -> Prompt:
        """A prompt that comes with the package.

        Example:
            >>> Prompt.shipped("feedback_v1").hash == Prompt.shipped("feedback_v1").hash
            True
        """
        file = files("agentkit.evolution.proposers").joinpath("prompts", f"{name}.txt")
        return cls(name=name, text=file.read_text(encoding="utf-8"))

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the text, as 64 hexadecimal digits; ``Author.prompt_hash``."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def request(
        self,
        definition: ToolDefinition,
        episodes: str,
        *,
        settings: ModelSettings,
        output_schema: JsonObject | None = None,
    ) -> ModelRequest:
        """The question about one tool.

        Args:
            definition: The tool as it is.
            episodes: What happened, in words.
            settings: How to generate.
            output_schema: What the answer is held to; None for a block between tags.
        """
        text = Template(self.text).substitute(
            tool=shown(described(definition), most=_LONGEST_TEXT * 5),
            schema=shown(definition.signature.parameters, most=_LONGEST_TEXT * 5),
            episodes=episodes,
            name=json.dumps(definition.name, ensure_ascii=False),
        )
        messages = (SystemMessage(text=_SYSTEM), UserMessage(text=text))
        return ModelRequest(messages=messages, settings=settings, output_schema=output_schema)

    def author(self, model: ChatModel) -> Author:
        """The model, asked with this prompt."""
        return Author(kind="model", name=model.name, prompt_hash=self.hash)


def described(definition: ToolDefinition) -> dict[str, Any]:
    """The words of a tool in the form of a block: what a proposer is shown and answers with.

    Example:
        >>> described(ToolDefinition(name="loan"))
        {'tool': 'loan', 'summary': '', 'parameters': {}, 'usage_rules': []}
    """
    description = definition.description
    record: dict[str, Any] = {
        "tool": definition.name,
        "summary": description.summary,
        "parameters": dict(description.parameters),
        "usage_rules": list(description.usage_rules),
    }
    if definition.specification.rules:
        record["rules"] = [rule_to_json(rule) for rule in definition.specification.rules]
    if definition.examples:
        first = definition.examples[0]
        record["first_example"] = {"arguments": dict(first.arguments), "result": first.result}
    return record


def shown(value: Any, *, most: int = _LONGEST_VALUE) -> str:
    """Data as JSON, cut to a length; tags of a block in it are broken up."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        text = "(can not be shown)"
    return clipped(text.replace("description>", "description >"), most=most)


def clipped(text: str, *, most: int = _LONGEST_TEXT) -> str:
    """A text cut to a length, with a mark where it was cut."""
    return text if len(text) <= most else f"{text[:most]}… (shortened)"
