"""A model as judge of changes: what deterministic checks cannot see.

A well-phrased lie passes every pattern. Another model reads the change against the contract with a
closed rubric, and may only say yes, no or unsure to each criterion. Anything that is not a clear
yes to all of them is a no, also an answer that cannot be read: a change that waits costs little,
one that was let through by a misreading may cost much.

A judge is an opinion, not a proof. It may be misled by what it reads, and models favour what they
would have written themselves (Panickssery et al., "LLM evaluators recognize and favor their own
generations", 2024); so take another model than the one that proposes. That is also why tools that
destroy or pay need a person as well, see ``ValidationPolicy``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from string import Template

from agentkit.evolution.checker import Judgement
from agentkit.evolution.validation.report import ProposedChange
from agentkit.evolution.validation.texts import rules_of
from agentkit.library.events import Author
from agentkit.messages import JsonObject, SystemMessage, Usage, UserMessage
from agentkit.models.base import ChatModel, MeteredModel, ModelRequest, ModelSettings
from agentkit.models.grammar import closed_object
from agentkit.models.prompted import mark_for
from agentkit.reading import read_once
from agentkit.tools.definition import is_instructions
from agentkit.tools.patterns import json_line
from agentkit.tools.rules import rule_sentence
from agentkit.tools.schema_validator import fits

CRITERIA = (
    *("same_purpose", "borne_out", "only_describes"),
    *("values_untouched", "honest", "general"),
)
"""What a judge is asked about; the prompt says what each means."""

_HOLDS = ("yes", "no", "unsure")
_SETTINGS = ModelSettings(temperature=0.0, max_tokens=1_000)
_LONGEST = 60_000
_LONGEST_REASON = 300


class ModelSemanticJudge:
    """Asks a model whether a change may go on; a ``ChangeJudge`` for the ``ToolManager``.

    Args:
        model: The judge. Take another one than the proposer's.
        settings: How it generates; greedily by default.

    Example:
        >>> import asyncio, json
        >>> from agentkit.testing import ScriptedModel
        >>> from agentkit.testing.rewrites import rewrite
        >>> fine = {name: {"reason": "It does.", "holds": "yes"} for name in CRITERIA}
        >>> judge = ModelSemanticJudge(ScriptedModel([json.dumps(fine), "Looks good to me!"]))
        >>> change = rewrite("calendar_cancel_event", {"rule": "Event ids come from bookings."})
        >>> asyncio.run(judge(change)).agrees, asyncio.run(judge(change)).reason[:27]
        (True, 'the answer cannot be read: ')
    """

    def __init__(self, model: ChatModel, *, settings: ModelSettings = _SETTINGS) -> None:
        self._model = MeteredModel(model)
        self._settings = settings

    @property
    def name(self) -> str:
        """``judge``, with the model that is asked."""
        return f"judge:{self._model.name}"

    @property
    def usage(self) -> Usage:
        """What asking the model has cost so far."""
        return self._model.usage

    @property
    def seconds(self) -> float:
        """How long the model took so far."""
        return self._model.seconds

    async def __call__(self, change: ProposedChange) -> Judgement:
        """What the model says.

        Raises:
            ModelError: The model could not answer.
        """
        prompt = shipped_prompt(_prompt_name(change))
        prompt_hash = hashlib.sha256(prompt.encode()).hexdigest()
        author = Author(kind="model", name=self._model.name, prompt_hash=prompt_hash)
        request = self._request(change, prompt)
        is_cut = any(edit.length > len(edit.after) for edit in change.edits)
        if is_cut or len(request.messages[-1].text) > _LONGEST:
            reason = "it is longer than what a judge can be shown in full"
            return Judgement(agrees=False, reason=reason, author=author)
        try:
            found = read_answer((await self._model.complete(request)).message.text)
        except ValueError as error:
            reason = f"the answer cannot be read: {error}"
            return Judgement(agrees=False, reason=reason, author=author)
        against = [
            f"{name}: {holds}. {reason}".strip()
            for name, (holds, reason) in found.items()
            if holds != "yes"
        ]
        reason = "; ".join(against) or "every criterion holds"
        return Judgement(agrees=not against, reason=reason, author=author)

    def _request(self, change: ProposedChange, prompt: str) -> ModelRequest:
        material = _material(change)
        mark = mark_for(material)
        system = Template(prompt).safe_substitute(mark=mark)
        question = f"material {mark}\n{material}\nend {mark}"
        return ModelRequest(
            messages=(SystemMessage(text=system), UserMessage(text=question)),
            tool_choice="none",
            output_schema=_answer_schema(),
            settings=self._settings,
        )


@cache
def shipped_prompt(name: str = "semantic_judge_v1") -> str:
    """The judge's instructions, as they come with the package."""
    file = files(__package__ or "").joinpath("prompts", f"{name}.txt")
    return file.read_text(encoding="utf-8")


def _prompt_name(change: ProposedChange) -> str:
    is_of_agent = is_instructions(change.base.name)
    return "instructions_judge_v1" if is_of_agent else "semantic_judge_v1"


def read_answer(text: str) -> Mapping[str, tuple[str, str]]:
    """Whether each criterion holds, and why, in the judge's words.

    Strict: one JSON object with exactly the criteria, each with exactly a reason and one of the
    three words; a key that stands twice, a further entry or a code fence makes it unreadable.

    Raises:
        ValueError: It cannot be read.

    Example:
        >>> read_answer('{"same_purpose": {"reason": "", "holds": "yes"}}')
        Traceback (most recent call last):
        ValueError: it has not exactly the entries that were asked for
    """
    try:
        data = read_once(text)
    except ValueError as error:
        raise ValueError(f"it is not one JSON object ({str(error)[:100]})") from error
    if fits(data, _answer_schema()) is not True:
        raise ValueError("it has not exactly the entries that were asked for")
    return {
        name: (data[name]["holds"], data[name]["reason"][:_LONGEST_REASON]) for name in CRITERIA
    }


def _answer_schema() -> JsonObject:
    holds = {"type": "string", "enum": list(_HOLDS)}
    entry = closed_object({"reason": {"type": "string"}, "holds": holds})
    return closed_object(dict.fromkeys(CRITERIA, entry))


def _material(change: ProposedChange) -> str:
    base, candidate = change.base, change.candidate
    tool = {name: part for name, part in base.to_json().items() if name not in {"origin", "body"}}
    kept = set(candidate.description.usage_rules)
    parts = {
        "the definition as it is": {**tool, "examples": tool.get("examples", [])[:3]},
        "learned rules as they are": list(map(rule_sentence, rules_of(base))),
        "what would change": [
            {"field": one.field, "before": one.before, "after": one.after} for one in change.edits
        ],
        "usage rules that would be gone": sorted(set(base.description.usage_rules) - kept),
        "learned rules as they would be": list(map(rule_sentence, rules_of(candidate))),
    }
    return "\n\n".join(f"# {title}\n{json_line(part)}" for title, part in parts.items())
