"""Examples: a prompt as rollouts have it, and the gold answer in the tokens of the policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from agentkit.errors import UsageError
from agentkit.evaluation import Benchmark, EvaluationSettings
from agentkit.evaluation.task import LeftOut
from agentkit.library import Library
from agentkit.messages import ToolCall
from agentkit_training.fine_tuning.prompting import Prompting, PromptReader, closing_token
from agentkit_training.gold import GoldAnswer
from agentkit_training.policy.policy import Policy
from agentkit_training.rollout.collecting import collect
from agentkit_training.rollout.rendering import Renderer
from agentkit_training.rollout.samples import Rollout


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
    prompting: Prompting = Prompting(),  # noqa: B008 - immutable
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
    reader = PromptReader(policy, prompting)
    rollouts = await collect(
        reader, asked, library=library, attempts=1, temperature=0, settings=settings
    )
    writer = _Writer(policy, prompting, reader, max_tokens or policy.context_tokens)
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
    """Writes gold answers as the policy would."""

    def __init__(
        self, policy: Policy, prompting: Prompting, reader: PromptReader, max_tokens: int
    ) -> None:
        self._renderer = Renderer(policy)
        self._prompting = prompting
        self._reader = reader
        self._end = closing_token(policy)
        self._max_tokens = max_tokens

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
        tools = self._reader.offered(prompt)
        answer = self._prompting.answer(self._renderer, calls, gold.text, tools)
        made = Example(
            task_id=rollout.task_id,
            prompt=prompt,
            completion=(*self._renderer.tokens(answer), self._end),
        )
        if len(made) > self._max_tokens:
            return f"too long: {len(made)} tokens, and there is room for {self._max_tokens}"
        return made
