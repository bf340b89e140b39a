"""Demonstrations: examples of several turns, made by acting out gold trajectories.

``make_examples`` teaches one answer to one prompt. A task that takes several calls, each with the
result of the one before, is taught whole: the gold trajectory is acted out by the runtime's own
agent in the task's own world, so that every prompt is the one that a rollout would have, tool
results included, and the task's verifiers say whether what is taught is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from agentkit.episodes import Episode
from agentkit.evaluation import Benchmark, EvaluationSettings, Task
from agentkit.evaluation.task import LeftOut
from agentkit.library import Library
from agentkit_training.errors import PolicyError
from agentkit_training.fine_tuning.examples import Example, Examples
from agentkit_training.fine_tuning.prompting import Prompting, closing_token
from agentkit_training.fine_tuning.rehearsing import as_recited, why_untaught
from agentkit_training.generation.decoding import Completion, Prompt
from agentkit_training.policy.policy import Policy
from agentkit_training.rollout.collecting import collect
from agentkit_training.rollout.policy_model import PolicyModel
from agentkit_training.rollout.rendering import Renderer
from agentkit_training.rollout.samples import Rollout


async def make_demonstrations(
    policy: Policy,
    benchmark: Benchmark,
    gold: Mapping[str, Episode],
    *,
    prompting: Prompting = Prompting(),  # noqa: B008 - immutable
    library: Library | None = None,
    settings: EvaluationSettings | None = None,
    max_tokens: int | None = None,
) -> Examples:
    """Examples of each task that has a gold trajectory: all of its answers bear loss.

    A trajectory is left out when its task's verifiers say no, and when one of its calls fails, see
    ``failed_call``.

    Args:
        policy: Whose tokenizer and chat template to use; its weights are not touched.
        benchmark: The tasks; where composites are taught, with them (``with_composites``).
        gold: By the id of the task an episode that solves it. Its calls are made anew, in the
            names under which tools are offered; what they returned then is not looked at.
        prompting: How tools and calls are written. Tools must stand in the prompt.
        library: What the tools are called and described as, see ``collect``.
        settings: How the tasks are asked; those of the rollouts. Nothing is refined.
        max_tokens: Longest example; None for as many as the policy has room for.

    Raises:
        PolicyError: The chat template writes no end token after an answer, or ``prompting`` leaves
            the tools to it.
    """
    if prompting.tools_in == "template":
        raise PolicyError(
            "demonstrations are written with tools in the prompt, and the prompting leaves them "
            "to the chat template; use tools_in='prompt'"
        )
    writer = _Reciting(policy=policy, prompting=prompting)
    model = PolicyModel(
        policy,
        writer=writer,
        format=prompting.format,
        constrained=prompting.constrained,
        max_tokens=policy.context_tokens,
    )
    rows: list[Example] = []
    left_out: list[LeftOut] = []
    for task in benchmark.tasks:
        if task.task_id not in gold:
            continue
        writer.begin(gold[task.task_id])
        (done,) = await collect(
            model,
            replace(benchmark, tasks=(task,)),
            library=library,
            attempts=1,
            temperature=0,
            settings=as_recited(settings),
        )
        made = _examples(task, done, max_tokens or policy.context_tokens)
        if isinstance(made, str):
            left_out.append(LeftOut(where=task.task_id, reason=made))
        else:
            rows += made
    return Examples(rows=tuple(rows), left_out=tuple(left_out))


def _examples(task: Task, done: Rollout, max_tokens: int) -> list[Example] | str:
    """The examples of a trajectory, or why there is none.

    There is one, unless a later prompt was written anew, as where only the first turn must call a
    tool: each of the texts is taught then.
    """
    if why := why_untaught(task, done):
        return why
    if not done.sequences:
        return "could not be acted out: no prompt was rendered"
    longest = max(map(len, done.sequences))
    if longest > max_tokens:
        return f"too long: {longest} tokens, and there is room for {max_tokens}"
    return [
        Example(
            task_id=done.task_id,
            prompt=one.prompt,
            completion=one.completion,
            written=one.written,
        )
        for one in done.sequences
    ]


@dataclass(kw_only=True)
class _Reciting:
    """Writes the answers of one episode, turn by turn, whatever it reads; then nothing more."""

    policy: Policy
    prompting: Prompting

    def __post_init__(self) -> None:
        self._renderer = Renderer(self.policy)
        self._end = closing_token(self.policy)
        self._answers: Iterator[tuple[int, ...]] = iter(())

    def begin(self, episode: Episode) -> None:
        """Recite this one from now on."""
        self._answers = (self._renderer.tokens(text) for text in self._texts(episode))

    async def write(self, prompts: Sequence[Prompt]) -> Sequence[Completion]:
        """The next answer to each prompt; there is one task, so there is one prompt."""
        return [self._completion(next(self._answers, ())) for _ in prompts]

    def _texts(self, episode: Episode) -> Iterator[str]:
        for turn in episode.turns:
            said = turn.message
            yield self.prompting.answer(self._renderer, said.tool_calls, said.text)

    def _completion(self, ids: tuple[int, ...]) -> Completion:
        whole = (*ids, self._end)
        return Completion(ids=whole, logprobs=(0.0,) * len(whole), is_ended=True)
