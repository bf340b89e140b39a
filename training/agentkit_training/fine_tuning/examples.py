"""Examples: a prompt as rollouts have it, and the gold answer in the tokens of the policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agentkit.errors import UsageError
from agentkit.evaluation import Benchmark, EvaluationSettings
from agentkit.evaluation.task import LeftOut
from agentkit.library import Library
from agentkit.messages import AssistantMessage, TokenIds, ToolCall, UserMessage
from agentkit.models.base import ModelRequest, ModelResponse
from agentkit.models.prompt_format import PromptFormat, render_answer, render_calls
from agentkit.tools.definition import ToolDefinition
from agentkit_training.errors import PolicyError
from agentkit_training.policy.policy import Policy
from agentkit_training.rollout.collecting import collect
from agentkit_training.rollout.policy_model import PolicyModel, ToolsIn, Writer, told_of_tools
from agentkit_training.rollout.rendering import Renderer
from agentkit_training.rollout.samples import Rollout
from agentkit_training.toolace.difficulty import GoldAnswer


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompting:
    """How tools and calls are written: one choice for rollouts, training and evaluation.

    Attributes:
        format: Of tools and calls, see ``PromptedModel``.
        constrained: Whether the prompt is that of constrained decoding.
        tools_in: Who writes the tools, see ``PolicyModel``; with ``template`` the others do not
            count.
    """

    format: PromptFormat = "json"
    constrained: bool = True
    tools_in: ToolsIn = "prompt"

    def model(
        self,
        policy: Policy,
        *,
        writer: Writer | None = None,
        max_tokens: int = 128,
        batch_size: int = 64,
    ) -> PolicyModel:
        """The policy as a chat model that is prompted this way; see there."""
        return PolicyModel(
            policy,
            writer=writer,
            tools_in=self.tools_in,
            format=self.format,
            constrained=self.constrained,
            max_tokens=max_tokens,
            batch_size=batch_size,
        )

    @property
    def is_constrained(self) -> bool:
        """Whether answers without calls are JSON, too."""
        return self.constrained and self.format == "json" and self.tools_in == "prompt"

    def answer(
        self,
        renderer: Renderer,
        calls: Sequence[ToolCall],
        text: str = "",
        tools: Sequence[ToolDefinition] = (),
    ) -> str:
        """An answer as the policy would have to write it, up to its end token.

        Args:
            renderer: Writes conversations with the chat template.
            calls: The calls.
            text: What is said where there are none.
            tools: What was offered, under the names that the calls use.
        """
        if self.tools_in == "template":
            return _templated(renderer, AssistantMessage(text=text, tool_calls=tuple(calls)), tools)
        if calls:
            return render_calls(calls, self.format)
        return render_answer(text) if self.is_constrained else text


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """What is read, and what is learned from it.

    Attributes:
        task_id: Where it comes from.
        prompt: Bears no loss. In a refine sample it holds the first answer as well (ToolACE-R,
            section 4.1: the loss mask on the first assistant turn).
        completion: The gold answer with the end token; each token of it bears loss. Of a
            demonstration of several turns, all that follows the prompt.
        written: For each token of ``completion`` whether the policy is to write it; only these
            bear loss. Empty for all of them.
    """

    task_id: str
    prompt: tuple[int, ...]
    completion: tuple[int, ...]
    written: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        if self.written and len(self.written) != len(self.completion):
            raise UsageError(
                f"the example of task {self.task_id!r} says of {len(self.written)} tokens whether "
                f"they are to be written, and has {len(self.completion)}; give one for each"
            )
        if not (self.prompt and self.completion):
            raise UsageError(
                f"the example of task {self.task_id!r} has {len(self.prompt)} tokens to read and "
                f"{len(self.completion)} to learn; it needs both"
            )

    def __len__(self) -> int:
        return len(self.prompt) + len(self.completion)

    @property
    def taught(self) -> tuple[bool, ...]:
        """For each token of ``completion`` whether it bears loss."""
        return self.written or (True,) * len(self.completion)

    @property
    def loss_tokens(self) -> int:
        """How many tokens bear loss."""
        return sum(self.taught)


@dataclass(frozen=True, kw_only=True, slots=True)
class Examples:
    """Examples to train on.

    Attributes:
        rows: The examples, in the order of the tasks.
        left_out: Tasks that none was made of, and why.
    """

    rows: tuple[Example, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    def __add__(self, other: Examples) -> Examples:
        return Examples(rows=self.rows + other.rows, left_out=self.left_out + other.left_out)


async def make_examples(
    policy: Policy,
    benchmark: Benchmark,
    answers: Mapping[str, GoldAnswer],
    *,
    prompting: Prompting = Prompting(),
    library: Library | None = None,
    settings: EvaluationSettings | None = None,
    max_tokens: int | None = None,
) -> Examples:
    """One example for each task that has a gold answer.

    Args:
        policy: Whose tokenizer and chat template to use.
        benchmark: The tasks.
        answers: Their gold answers, see ``gold_answers``; tasks without one are passed over.
        prompting: How tools and calls are written.
        library: What the tools are called and described as, see ``collect``.
        settings: How the tasks are asked; those of the rollouts.
        max_tokens: Longest example; None for as many as the policy has room for.

    Raises:
        PolicyError: The chat template writes no end token after an answer.
    """
    taught = tuple(task for task in benchmark.tasks if task.task_id in answers)
    if not taught:
        return Examples()
    asked = replace(benchmark, tasks=taught)
    writer = _Writer(policy, prompting, max_tokens or policy.context_tokens)
    reader = told_of_tools(
        writer,
        tools_in=prompting.tools_in,
        format=prompting.format,
        constrained=prompting.constrained,
    )
    rollouts = await collect(
        reader, asked, library=library, attempts=1, temperature=0, settings=settings
    )
    rows: list[Example] = []
    left_out: list[LeftOut] = []
    for one in rollouts:
        made = writer.example(one, answers[one.task_id])
        if isinstance(made, Example):
            rows.append(made)
        else:
            left_out.append(LeftOut(where=one.task_id, reason=made))
    return Examples(rows=tuple(rows), left_out=tuple(left_out))


class _Writer:
    """Reads prompts in the policy's place, and writes gold answers as the policy would."""

    def __init__(self, policy: Policy, prompting: Prompting, max_tokens: int) -> None:
        self.name = policy.name
        self._renderer = Renderer(policy)
        self._prompting = prompting
        self._end = closing_token(policy)
        self._max_tokens = max_tokens
        self._offered: dict[tuple[int, ...], tuple[ToolDefinition, ...]] = {}

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """An empty answer, with the tokens of the prompt, whose tools are noted."""
        prompt = self._renderer.prompt(request.messages, {}, tools=request.tools).ids
        self._offered[prompt] = request.tools
        return ModelResponse(
            message=AssistantMessage(text=""), model=self.name, tokens=TokenIds(prompt=prompt)
        )

    def example(self, rollout: Rollout, gold: GoldAnswer) -> Example | str:
        """The example, or why there is none."""
        if rollout.fault or not rollout.sequences:
            return f"could not be asked: {rollout.fault or 'no prompt was rendered'}"
        names = {own: name for name, own in rollout.episodes[0].library_names.items()}
        calls = [
            ToolCall(
                call_id=str(number), name=names.get(call.name, call.name), arguments=call.arguments
            )
            for number, call in enumerate(gold.calls, start=1)
        ]
        prompt = rollout.sequences[0].prompt
        tools = self._offered[prompt]
        answer = self._prompting.answer(self._renderer, calls, gold.text, tools)
        made = Example(
            task_id=rollout.task_id,
            prompt=prompt,
            completion=(*self._renderer.tokens(answer), self._end),
        )
        if len(made) > self._max_tokens:
            return f"too long: {len(made)} tokens, and there is room for {self._max_tokens}"
        return made


_PROBE = "agentkit"


def closing_token(policy: Policy) -> int:
    """The end token that the chat template writes after an answer.

    Raises:
        PolicyError: The template writes none of the policy's end tokens there.
    """
    renderer = Renderer(policy)
    said = (UserMessage(text=_PROBE), AssistantMessage(text=_PROBE))
    after = renderer.text(said, asks=False).rpartition(_PROBE)[2]
    for token in renderer.tokens(after):
        if token in policy.end_ids:
            return token
    raise PolicyError(
        f"after an answer the chat template of {policy.name} writes {after!r}, which holds none of "
        f"the end tokens {sorted(policy.end_ids)}; name the right one in the policy's end_ids"
    )


def _templated(
    renderer: Renderer, answer: AssistantMessage, tools: Sequence[ToolDefinition]
) -> str:
    """What the chat template writes for an answer, without the end of the turn."""
    asked = (UserMessage(text=_PROBE),)
    before = renderer.text(asked, asks=True, tools=tools)
    whole = renderer.text((*asked, answer), asks=False, tools=tools)
    ends = [renderer.said([token]) for token in renderer.speaker.end_ids]
    place = max(whole.rfind(end) for end in ends)
    if not whole.startswith(before) or place < len(before):
        raise PolicyError(
            f"the chat template of {renderer.speaker.name} writes an answer otherwise than behind "
            "its own request for one, so that no answer can be taught; use tools_in='prompt'"
        )
    return whole[len(before) : place]
