"""What a look at held-out tasks counts."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from agentkit.evaluation import EvaluationSettings
from agentkit_training import PolicyModel, tiny_policy
from agentkit_training.generation.decoding import Completion
from agentkit_training.jobs.running import measured


@dataclass(kw_only=True)
class Knowing:
    """Writes the right call for what a prompt asks about."""

    tokenizer: object

    async def write(self, prompts):
        """An answer to each."""
        return [self._answer(self.tokenizer.decode(list(one.ids))) for one in prompts]

    def _answer(self, prompt):
        item = prompt.rpartition("What does ")[2].partition(" cost")[0].strip()
        call = {"calls": [{"name": "get_price", "arguments": {"item": item}}]}
        ids = self.tokenizer.encode(json.dumps(call), add_special_tokens=False)
        ids = (*ids, self.tokenizer.eos_token_id)
        return Completion(ids=ids, logprobs=(-1.0,) * len(ids), is_ended=True)


def test_what_could_not_be_answered_is_not_solved(shop):
    """A prompt beyond the window counts as a task that failed, and as a fault."""
    first, *others = shop.tasks
    long = replace(first, request="So much to say. " * 2000 + first.request)
    policy = tiny_policy(["What does apple bread cheese cost?"])
    model = PolicyModel(policy, writer=Knowing(tokenizer=policy.tokenizer))
    settings = EvaluationSettings(max_steps=1)
    records = [
        measured(model, replace(shop, tasks=tasks), step=0, settings=settings)
        for tasks in (shop.tasks, (long, *others))
    ]
    figures = [one.figures for one in records]
    assert [(one["accuracy"], one["faults"], one["tasks"]) for one in figures] == [
        (1.0, 0.0, 3.0),
        (2 / 3, 1.0, 3.0),
    ]
    assert records[0].notes == ()
    (note,) = records[1].notes
    assert note.startswith("1 of 3 tasks could not be asked, answered or judged; the first: Model")
    assert "tiny has room for" in note
