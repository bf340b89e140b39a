"""The learning interface: what a policy is shown in training only (SEAL, section 3.3)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, Self, TypeAlias

from agentkit.diagnosis import FailureProfile
from agentkit.diagnosis.findings import reported_error
from agentkit.diagnosis.labels import NOT_FAILURES
from agentkit.diagnosis.wording import tells_failure
from agentkit.episodes import FailureLabel
from agentkit.errors import UsageError
from agentkit.evaluation import Benchmark, EvaluationSettings
from agentkit.library import Library
from agentkit.messages import JsonObject, Message, ToolMessage
from agentkit.models.base import ChatModel, ModelRequest, ModelResponse
from agentkit.retrieval import Retriever
from agentkit.tools.definition import ToolDefinition
from agentkit_training.rollout.collecting import RolloutModel, collect
from agentkit_training.rollout.samples import Rollout

CUES_NOTE = (
    "Each call gives every parameter that is marked as required, takes values only from the list "
    "of a parameter that has one, and names a tool that is listed here."
)
"""What is said about cues in the instructions, where there are some."""

MOST_VALUES = 20
"""Longest list of allowed values that is said again."""


def cued(definition: ToolDefinition) -> ToolDefinition:
    """The definition with a cue behind each parameter that is required or has listed values.

    A cue says that a parameter must be given, and which values it allows, as in SEAL's released
    configuration. Nested parameters have cues as well. Cueing twice is cueing once.

    Args:
        definition: A tool. What its learned rules have narrowed counts as its schema.

    Example:
        >>> schema = {"properties": {"unit": {"enum": ["kg", "lb"]}}, "required": ["unit"]}
        >>> weigh = ToolDefinition.from_schema("weigh", "Weigh it.", schema)
        >>> cued(weigh).description.parameters["unit"]
        '[required; one of "kg", "lb"]'
    """
    texts = dict(definition.description.parameters)
    for path, part, is_required in _places(definition.parameters_schema, ""):
        cue = _cue(part, is_required=is_required)
        text = texts.get(path, "")
        if cue and not text.endswith(cue):
            texts[path] = f"{text} {cue}" if text else cue
    if texts == definition.description.parameters:
        return definition
    return replace(definition, description=replace(definition.description, parameters=texts))


def _places(schema: JsonObject, path: str) -> Iterator[tuple[str, JsonObject, bool]]:
    """Each parameter with its dotted path, its schema, and whether it must be given."""
    properties, required = schema.get("properties"), schema.get("required")
    must = required if isinstance(required, list | tuple) else ()
    for name, part in properties.items() if isinstance(properties, Mapping) else ():
        if isinstance(part, Mapping):
            inside = f"{path}.{name}" if path else name
            yield inside, part, name in must
            yield from _places(part, inside)
    items = schema.get("items")
    if path and isinstance(items, Mapping):
        yield f"{path}[]", items, False
        yield from _places(items, f"{path}[]")


def _cue(part: JsonObject, *, is_required: bool) -> str:
    values = _values(part)
    said = [
        "required" if is_required else "",
        f"one of {', '.join(json.dumps(one, ensure_ascii=False) for one in values)}"
        if values
        else "",
    ]
    words = "; ".join(filter(None, said))
    return f"[{words}]" if words else ""


def _values(part: JsonObject) -> list[Any]:
    """The allowed values, if they are few enough to say."""
    if "const" in part:
        return [part["const"]]
    values = part.get("enum")
    return list(values) if isinstance(values, list | tuple) and len(values) <= MOST_VALUES else []


MOST_NAMES = 12
"""Tools that are listed after a call of a tool that is not there."""

_FINAL = ("Do not repeat ", "Answer with what is known")
_UNKNOWN = "Offered are {names}. If none of them does what is asked, answer in words."
_AGAIN = "It is called as {form}. Change what the error is about and keep the rest."
_REPORTED = (
    "It is called as {form}. The error is about an argument, or about the state that the call met: "
    "check both, with a tool that reads the state if there is one, and then call again, otherwise "
    "than before."
)


class FeedbackModel:
    """Passes requests on, with help for recovering behind the results of failed calls.

    The same conversation is always worded the same, so that what a policy wrote earlier goes on
    from the tokens that it read. It refuses to answer at temperature 0, which is evaluation: the
    learning interface ends with training.

    Args:
        model: Answers.
    """

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """The model's answer.

        Raises:
            UsageError: The request is one of an evaluation.
        """
        if request.settings.temperature == 0:
            raise UsageError(
                "the learning interface helps a policy to recover, and temperature 0 evaluates; "
                "evaluate the policy's own model, without the interface"
            )
        known = {tool.name: tool for tool in request.tools}
        said = tuple(_helped(message, known) for message in request.messages)
        return await self._model.complete(replace(request, messages=said))

    def expect(self, runs: int) -> None:
        """Say how many runs are under way."""
        if isinstance(self._model, RolloutModel):
            self._model.expect(runs)

    def forget(self) -> None:
        """Drop what the model keeps of earlier answers."""
        if isinstance(self._model, RolloutModel):
            self._model.forget()


def recovery_hint(message: ToolMessage, known: Mapping[str, ToolDefinition]) -> str:
    """How to go on after a failed call; empty for a result, and where it must not be repeated.

    Args:
        message: The result as the runtime worded it.
        known: The tools that are offered, by name.
    """
    is_failure = tells_failure(message.name, message.text)
    tool = known.get(message.name)
    if tool is None:
        return _UNKNOWN.format(names=_names(known)) if is_failure and known else ""
    if is_failure:
        is_final = message.text.rpartition("\n")[2].startswith(_FINAL)
        return "" if is_final else _AGAIN.format(form=call_form(tool))
    is_reported = _reported(message.text)
    return _REPORTED.format(form=call_form(tool)) if is_reported else ""


def call_form(definition: ToolDefinition) -> str:
    """How a tool is called, from its schema: names, types, and what may be left out.

    Example:
        >>> schema = {"properties": {"city": {"type": "string"}, "days": {}}, "required": ["city"]}
        >>> call_form(ToolDefinition.from_schema("weather", "Forecast.", schema))
        'weather(city: string, days?)'
    """
    properties: Mapping[str, object] = definition.parameters_schema.get("properties", {})
    required = definition.signature.required
    parts = (
        f"{name}{'' if name in required else '?'}{_type_of(part)}"
        for name, part in properties.items()
    )
    return f"{definition.name}({', '.join(parts)})"


def _type_of(part: object) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else None
    return f": {kind}" if isinstance(kind, str) else ""


def _names(known: Iterable[str]) -> str:
    names: Sequence[str] = list(known)
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _reported(text: str) -> bool:
    """Whether a result is an error that the tool returned."""
    if not text.lstrip().startswith("{"):
        return False
    try:
        value: JsonObject = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return reported_error(value) is not None


def _helped(message: Message, known: Mapping[str, ToolDefinition]) -> Message:
    hint = recovery_hint(message, known) if isinstance(message, ToolMessage) else ""
    return replace(message, text=f"{message.text}\n{hint}") if hint else message


GUIDELINES: Mapping[FailureLabel, str] = MappingProxyType(
    {
        "invalid_tool_call": (
            "Write each call in the format that was asked for, whole and without a word around it, "
            "and call only tools that are listed."
        ),
        "argument_mismatch": (
            "Before a call, go through the tool's parameters: give each one that is required, in "
            "its type and from its allowed values, with what the user or an earlier result said."
        ),
        "state_mismatch": (
            "Before a call that changes something, look at the newest results: the call must fit "
            "the state that they show, and every change that was asked for needs its call."
        ),
        "recovery_failure": (
            "After an error, read which rule was broken, change the call accordingly or look up "
            "what is missing, and go on; neither repeat the same call nor give up."
        ),
        "spurious_tool_call": (
            "When no listed tool does what is asked, or something that it needs was not said, "
            "answer in words instead of calling one."
        ),
        "missing_tool_call": (
            "When a listed tool does a part of what is asked, call it before answering; go on "
            "until no part is open."
        ),
        "response_mismatch": (
            "Take the final answer from the results, answer everything that was asked, and keep to "
            "the form and units of the request."
        ),
    }
)
"""The sentence for each failure label."""

MOST_GUIDELINES = 3
"""Sentences that are shown at a time, as in the released code."""

_HEADER = "Keep in mind:"


def prevalent_labels(
    profile: FailureProfile, *, share: float = 0.1, turns: float = 8.0
) -> tuple[FailureLabel, ...]:
    """The failures that a policy has often, the most frequent first (SEAL, Eq. 14 and 15).

    The thresholds on share and count are those of the released code. It relates the share to failed
    turns, and leaves out labels whose rollouts have a mean reward of .6 or more. Here the share is
    one of all turns, passed ones included, so that a failure drops out as it becomes rare.

    Args:
        profile: The diagnoses of recent rollouts.
        share: Least share of a label among all turns.
        turns: Least weight of its turns; a fresh one weighs 1.
    """
    observed = profile.observed
    return tuple(
        label
        for label, part in profile.label_distribution().items()
        if label not in NOT_FAILURES and part >= share and part * observed >= turns - 1e-9
    )


def guideline_text(labels: Iterable[FailureLabel]) -> str:
    """The guidelines for failures, the first ones only; empty when there are none.

    Example:
        >>> print(guideline_text(["missing_tool_call"]))
        Keep in mind:
        - When a listed tool does a part of what is asked, call it before answering; go on until \
no part is open.
    """
    chosen = [GUIDELINES[label] for label in labels if label in GUIDELINES][:MOST_GUIDELINES]
    return "\n".join([_HEADER, *(f"- {sentence}" for sentence in chosen)]) if chosen else ""


Mode: TypeAlias = Literal["off", "by_profile", "always"]
"""Whether a component is shown: never, when the failures that it is for are frequent, or always."""

CUE_LABELS: frozenset[FailureLabel] = frozenset(
    {"argument_mismatch", "invalid_tool_call", "missing_tool_call"}
)
"""Failures that cues are for. The paper names the first and the last (section 3.3)."""

FEEDBACK_LABELS: frozenset[FailureLabel] = frozenset({"recovery_failure", "invalid_tool_call"})
"""Failures that feedback is for. The paper names the first; a call of a tool that is not there is
the second, and its feedback is in the paper's appendix D.3."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LearningInterface:
    """The training-time interface o' = T(o, tools, diagnosis, profile) of SEAL (Eq. 8 and 9).

    It changes what the policy reads and nothing else: texts of parameters, instructions, and what
    failed calls say. Tools, validation, rewards and verdicts stay, and it is not at hand where a
    policy is evaluated: ``collect`` knows nothing of it, ``collect_through`` does.

    The default is all off. The configuration that the authors released has ``cues="always"`` and
    the other two off. Where tools are retrieved, a cue is text like any other and may move a rank.

    Attributes:
        cues: Schema cues (``cued``).
        feedback: Help with recovering from failed calls (``recovery_hint``).
        guidelines: Sentences for frequent failures (``GUIDELINES``). The paper selects them from
            the profile, so that a clean one leaves nothing to say (section 3.3); ``always`` does
            not wait for it, and shows the first ones until the profile can tell.
        share: Least share among all turns for a failure to count as frequent.
        turns: Least number of turns for that.
        labels: The frequent failures of the last profile, the most frequent first.
        is_clean: Whether the last profile has enough turns and no failure with the share.
    """

    cues: Mode = "off"
    feedback: Mode = "off"
    guidelines: Mode = "off"
    share: float = 0.1
    turns: float = 8.0
    labels: tuple[FailureLabel, ...] = field(default=(), repr=False)
    is_clean: bool = field(default=False, repr=False)

    def updated(self, profile: FailureProfile) -> Self:
        """The interface for the next round, I_{k+1} = Update(I_k, F_k) (SEAL, Eq. 15).

        Args:
            profile: The diagnoses of recent rollouts. ``profile.observe_all(rollout.episodes)``
                counts a round, ``profile.decay(0.5)`` before it lets earlier ones fade.
        """
        labels = prevalent_labels(profile, share=self.share, turns=self.turns)
        return replace(self, labels=labels, is_clean=self._finds_clean(profile))

    @property
    def has_cues(self) -> bool:
        """Whether cues are shown now."""
        return self._is_on(self.cues, CUE_LABELS)

    @property
    def has_feedback(self) -> bool:
        """Whether failed calls come with help now."""
        return self._is_on(self.feedback, FEEDBACK_LABELS)

    @property
    def has_guidelines(self) -> bool:
        """Whether guidelines are shown now."""
        return bool(guideline_text(self._guided))

    @property
    def can_show(self) -> bool:
        """Whether anything may ever be shown."""
        return {self.cues, self.feedback, self.guidelines} != {"off"}

    @property
    def helps(self) -> bool:
        """Whether anything is shown now that the policy is not to see at evaluation."""
        return self.has_cues or self.has_feedback or self.has_guidelines

    def library(self, library: Library, *, names: Collection[str] | None = None) -> Library:
        """The library as it is shown in training; the same object without cues.

        Args:
            library: The tools.
            names: Those that are offered; None for all.
        """
        if not self.has_cues:
            return library
        tools = [tool for tool in library if names is None or tool.name in names]
        return library.with_tools(tool.with_definition(cued(tool.definition)) for tool in tools)

    def instructions(self, said: str = "") -> str:
        """The instructions of training: those that are given anyway, and what comes with them."""
        more = (CUES_NOTE if self.has_cues else "", guideline_text(self._guided))
        return "\n\n".join(filter(None, (said, *more)))

    def model(self, model: ChatModel) -> ChatModel:
        """The model with help after failed calls; the same object without any."""
        return FeedbackModel(model) if self.has_feedback else model

    @property
    def _guided(self) -> tuple[FailureLabel, ...]:
        """The failures that guidelines are for now, of which the first few are shown."""
        if self.guidelines == "off":
            return ()
        if self.guidelines == "always" and not self.labels and not self.is_clean:
            return tuple(GUIDELINES)
        return self.labels

    def _finds_clean(self, profile: FailureProfile) -> bool:
        """Whether no failure is frequent, and not just because too few turns were seen."""
        observed = profile.observed
        if not observed or observed < self.turns - 1e-9:
            return False
        return not prevalent_labels(profile, share=self.share, turns=0.0)

    def _is_on(self, mode: Mode, labels: frozenset[FailureLabel]) -> bool:
        return mode == "always" or (
            mode == "by_profile" and any(label in labels for label in self.labels)
        )


async def collect_through(
    interface: LearningInterface,
    model: ChatModel,
    benchmark: Benchmark,
    *,
    library: Library | None = None,
    attempts: int = 8,
    temperature: float = 1.0,
    seed: int = 0,
    settings: EvaluationSettings | None = None,
    retriever: Retriever | None = None,
) -> tuple[Rollout, ...]:
    """Let the policy try every task, shown what the interface adds (SEAL, Eq. 8 and 13).

    Tasks, tools, worlds and verifiers are those of ``collect``, which is what an interface that is
    off comes to.

    Args:
        interface: What is added.
        model: The policy's model, without anything around it.
        benchmark: The tasks, their tools and how they are judged.
        library: What the tools are called and described as; None for the benchmark's own texts.
        attempts: Rollouts of each task.
        temperature: Of sampling; above 0 unless nothing is added.
        seed: Of the first attempt.
        settings: How to ask.
        retriever: Finds tools, see ``collect``.

    Raises:
        UsageError: The temperature is 0, which evaluates, and the interface adds something.
    """
    if temperature == 0 and interface.helps:
        raise UsageError(
            "temperature 0 evaluates, and the learning interface is for training alone; use "
            "collect, or give a temperature above 0"
        )
    asked = settings or EvaluationSettings()
    shown = _shown_library(interface, benchmark, library, retrieves=asked.tools == "retrieved")
    return await collect(
        interface.model(model),
        benchmark,
        library=shown,
        attempts=attempts,
        temperature=temperature,
        seed=seed,
        settings=replace(asked, instructions=interface.instructions(asked.instructions)),
        retriever=retriever,
    )


def _shown_library(
    interface: LearningInterface, benchmark: Benchmark, library: Library | None, *, retrieves: bool
) -> Library | None:
    """The library as it is shown; of tools that no task offers the texts stay as they are."""
    if not interface.has_cues:
        return library
    known = Library() if library is None else library
    own = [one for one in benchmark.definitions if one.name not in known]
    offered = {name for task in benchmark.tasks for turn in task.turns for name in turn.offers}
    return interface.library(known.with_tools(own), names=None if retrieves else offered)
