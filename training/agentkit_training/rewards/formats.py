"""ToolDNA's Format: whether an answer has the structure that was asked for (appendix C.3.1).

The paper's answers are tags, and Format says whether all of them are there. Answers of the runtime
are read leniently by its parser, so there are two ways to ask:

* ``is_readable``, the default, is what the runtime itself saw: nothing was cut off at its longest
  length, and no call stayed text that the parser could not read. It needs no tokens, and holds for
  every way in which tools are put before a model. An answer in plain words is readable, so it costs
  nothing where the prompt asks for JSON only.
* ``format_asked_for`` is strict: it reads what the policy wrote, token for token, and asks for the
  structure that the prompt of ``PromptedModel`` demands. It is the paper's Format.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Protocol

from agentkit.episodes import Episode, Turn
from agentkit.evolution.proposers.blocks import CLOSING, OPENING
from agentkit.models.call_parser import parse_calls
from agentkit.models.grammar import ANSWER, CALLS
from agentkit.models.prompt_format import PromptFormat
from agentkit_training.errors import PolicyError
from agentkit_training.policy.policy import Policy

_BLOCKS = re.compile(rf"(?:\s*{OPENING}(?:(?!{OPENING}).)*?{CLOSING})+\s*\Z", re.DOTALL)
"""Suggested descriptions behind an answer (ToolDNA, figure 3)."""


class FormatCheck(Protocol):
    """Says whether the answers of an episode have the structure that was asked for."""

    def __call__(self, episode: Episode) -> bool:
        """Whether Format is 1."""
        ...


def is_readable(episode: Episode) -> bool:
    """Whether no answer was cut off, and none holds a call that could not be read."""
    is_cut = any(turn.finish_reason == "length" for turn in episode.turns)
    return not is_cut and not has_unread_call(episode)


def has_unread_call(episode: Episode) -> bool:
    """Whether a call stayed text, by the diagnosis that ``collect`` has made of the episode.

    False without a diagnosis. Calls whose arguments are no JSON are calls; ``ToolDnaMetrics``
    counts them as not parsed.
    """
    found = () if episode.diagnosis is None else episode.diagnosis.turns
    return any(
        one.label == "invalid_tool_call" and not one.call_id
        for turn in found
        for one in turn.attributions
    )


def format_asked_for(policy: Policy, prompt_format: PromptFormat = "json") -> FormatCheck:
    """The strict check: each answer, as written, is what the prompt asks for and nothing else.

    ``json``: one JSON object, with a list of calls or with an answer. ``python``: a list of calls
    without a word beside it; an answer without calls may be any text, as ToolACE-R's prompt says.
    Each answer ends with an end token. Behind it may stand whole ``<description>`` blocks, which
    ToolDNA asks for; half a block is no structure.

    Args:
        policy: Whose tokens the turns hold.
        prompt_format: The ``format`` of the ``PolicyModel``.

    The check raises ``PolicyError`` for an episode whose turns hold no tokens.
    """
    return _AskedFor(policy=policy, prompt_format=prompt_format)


@dataclass(frozen=True, kw_only=True)
class _AskedFor:
    """The strict check, with its settings."""

    policy: Policy = field(repr=False)
    prompt_format: PromptFormat

    def __call__(self, episode: Episode) -> bool:
        texts = [_written(turn, self.policy) for turn in episode.turns]
        return all(text is not None and _FITS[self.prompt_format](text) for text in texts)


def _written(turn: Turn, policy: Policy) -> str | None:
    """What the policy wrote in a turn; None when it did not come to an end."""
    if turn.tokens is None:
        raise PolicyError(
            "the format of an answer can not be told, since its turn has no tokens; use "
            "is_readable for episodes of a model that reports none"
        )
    ids = turn.tokens.completion
    if not ids or ids[-1] not in policy.end_ids:
        return None
    text = str(policy.tokenizer.decode(list(ids[:-1]), skip_special_tokens=False))
    return _BLOCKS.sub("", text)


def _is_json_form(text: str) -> bool:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if not isinstance(found, dict) or len(found) != 1:
        return False
    calls = found.get(CALLS)
    is_call = isinstance(calls, list) and bool(calls) and all(map(_is_json_call, calls))
    return is_call or ANSWER in found


def _is_json_call(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"name", "arguments"}
        and isinstance(value["name"], str)
        and isinstance(value["arguments"], dict)
    )


def _is_python_form(text: str) -> bool:
    parsed = parse_calls(text)
    return not parsed.calls or (not parsed.text and text.strip().startswith("["))


_FITS = {"json": _is_json_form, "python": _is_python_form}
