"""The answers of an earlier run are judged again, and no model is asked."""

from __future__ import annotations

from dataclasses import replace

from agentkit.evaluation import AllowedCalls
from agentkit.evaluation.recorded import RecordedAnswers
from agentkit.evaluation.runner import evaluate
from agentkit.evaluation.settings import EvaluationSettings
from agentkit.messages import ToolCall, ToolMessage
from agentkit.metrics import AllowedCall
from agentkit.testing import FunctionModel


async def test_a_corrected_gold_answer_changes_the_verdict(lamps, good, store):
    """Answers that failed pass once the gold is right; the model's part stays as it was."""
    wrong = AllowedCalls(
        calls=(AllowedCall(name="set_lamp", allowed={"room": ["cellar"], "state": ["on"]}),)
    )
    mistaken = replace(lamps, tasks=tuple(replace(t, expects=(wrong,)) for t in lamps.tasks))
    settings = EvaluationSettings(refine="adaptive")
    await evaluate(mistaken, model=good, store=store, run="before", settings=settings)
    before = {e.metadata["task"]: e for e in store.select()}
    asked = len(good.requests)
    recorded = RecordedAnswers.of(before.values())
    outcome = await evaluate(lamps, model=recorded, store=store, run="after", settings=settings)
    assert outcome.finished == 4
    assert len(good.requests) == asked
    after = [e for e in store.select() if e.metadata["run"] == "after"]
    assert all(e.verdict.passed for e in after)
    assert not any(e.verdict.passed for e in before.values())
    for episode in after:
        old = before[episode.metadata["task"]]
        assert episode.calls == old.calls
        assert episode.usage == old.usage
        assert episode.turns[0].refine == old.turns[0].refine
        assert episode.model == "good"


async def test_calls_run_again_in_a_fresh_world(house, store):
    """In a world the recorded calls act anew, so that its state can be judged."""

    def diligent(request):
        last = request.messages[-1]
        if isinstance(last, ToolMessage):
            return "Done."
        tool = "set_fan" if "fan" in last.text else "set_lamp"
        arguments = {"room": "hall", "state": "on"}
        return [ToolCall(call_id=f"c{len(request.messages)}", name=tool, arguments=arguments)]

    await evaluate(house, model=FunctionModel(diligent), store=store, run="before")
    recorded = RecordedAnswers.of(store.select())
    await evaluate(house, model=recorded, store=store, run="after")
    again = [e for e in store.select() if e.metadata["run"] == "after"]
    assert len(again) == 2
    assert all(e.verdict.passed for e in again)


async def test_what_was_never_asked_is_left_out(lamps, good, store):
    """Tasks that the earlier run does not have are not part of the new one."""
    await evaluate(replace(lamps, tasks=lamps.tasks[:2]), model=good, store=store, run="before")
    recorded = RecordedAnswers.of(store.select())
    outcome = await evaluate(lamps, model=recorded, store=store, run="after")
    assert outcome.planned == 2


async def test_a_user_turn_that_was_never_answered_fails(house, store):
    """A task that got a further user turn since is judged as far as there are answers."""
    (task,) = house.tasks
    before = replace(house, tasks=(replace(task, follow_ups=()),))
    await evaluate(before, model=FunctionModel(lambda _: "Fine."), store=store, run="before")
    recorded = RecordedAnswers.of(store.select())
    outcome = await evaluate(house, model=recorded, store=store, run="after")
    assert (outcome.finished, outcome.unfinished) == (1, 0)
    last = next(store.select())
    assert (last.metadata["user_turn"], last.stop_reason) == ("1", "error")
    assert last.error == "ModelStatusError: the recorded run has no further answer"
