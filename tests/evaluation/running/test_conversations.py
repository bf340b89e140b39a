"""Tasks of several user turns in a world of their own."""

from __future__ import annotations

from dataclasses import replace

from agentkit.evaluation import FinalState
from agentkit.evaluation.attempt import is_passed
from agentkit.evaluation.runner import evaluate
from agentkit.evaluation.settings import EvaluationSettings
from agentkit.messages import ToolCall, ToolMessage, UserMessage
from agentkit.testing import FunctionModel, ScriptedModel
from agentkit.tools.definition import Effects


def switch(tool):
    """A call that switches something on in the hall."""
    return ToolCall(call_id="1", name=tool, arguments={"room": "hall", "state": "on"})


def diligent(request):
    """Does what the last user message asks, then says so."""
    last = request.messages[-1]
    if isinstance(last, ToolMessage):
        return "Done."
    tool = "set_fan" if "fan" in last.text else "set_lamp"
    return [replace(switch(tool), call_id=f"c{len(request.messages)}")]


async def test_each_user_turn_is_an_episode_of_one_session(house, store):
    """Two user turns give two episodes of one session, each judged; the last one ends it."""
    await evaluate(house, model=FunctionModel(diligent), store=store, run="r")
    second, first = store.select()
    assert first.session_id == second.session_id
    assert [e.metadata["user_turn"] for e in (first, second)] == ["0", "1"]
    assert [e.metadata.get("ends") for e in (first, second)] == [None, "true"]
    assert first.verdict.passed
    assert second.verdict.passed
    assert is_passed([first, second])


async def test_the_conversation_is_carried_on(house, store):
    """The second turn's model reads the whole first one."""
    model = FunctionModel(diligent)
    await evaluate(house, model=model, store=store, run="r")
    said = [m.text for m in model.requests[-1].messages if isinstance(m, UserMessage)]
    assert said == ["Lamp in the hall.", "And the fan."]


async def test_a_wrong_state_fails(house, store):
    """A model that does nothing leaves the wrong state, and the attempt fails."""
    await evaluate(house, model=FunctionModel(lambda _: "Fine."), store=store, run="r")
    episodes = list(store.select())
    assert len(episodes) == 2
    assert not any(e.verdict.passed for e in episodes)
    assert not is_passed(episodes[::-1])


async def test_attempts_do_not_share_a_world(house, store):
    """What one attempt changed is not there for the next."""
    settings = EvaluationSettings(attempts=2)
    expects = (FinalState(state={"on": ["fan/hall", "lamp/hall"]}),)
    (task,) = house.tasks
    task = replace(task, follow_ups=(replace(task.follow_ups[0], expects=expects),))
    await evaluate(
        replace(house, tasks=(task,)),
        model=FunctionModel(diligent),
        store=store,
        run="r",
        settings=settings,
    )
    assert all(e.verdict.passed for e in store.select())


async def test_a_wrong_state_belongs_to_the_turn_that_changed_it(house, store):
    """Of three steps the second one changes the world, and the wrong state is put down to it."""
    script = [
        [replace(switch("set_lamp"), call_id="a", arguments={"room": "hall", "state": "off"})],
        [replace(switch("set_lamp"), call_id="b", arguments={"room": "attic", "state": "on"})],
        [replace(switch("set_lamp"), call_id="c", arguments={"room": "hall", "state": "off"})],
        "Done.",
    ]
    (task,) = house.tasks
    await evaluate(
        replace(house, tasks=(replace(task, follow_ups=()),)),
        model=ScriptedModel(script),
        store=store,
        run="r",
    )
    (episode,) = store.select()
    labels = [turn.label for turn in episode.diagnosis.turns]
    assert labels == ["pass", "state_mismatch", "pass", "pass"]


async def test_a_failure_left_open_is_followed_into_the_next_turn(house, store):
    """A call that failed in the first user turn and succeeds in the second one counts as mended."""
    wrong = ToolCall(call_id="a", name="set_lamp", arguments={"room": "hall", "state": "bright"})
    script = [[wrong], "I could not.", [replace(switch("set_lamp"), call_id="b")], "Now it is."]
    await evaluate(house, model=ScriptedModel(script), store=store, run="r")
    second, first = store.select()
    assert [one.outcome for one in first.diagnosis.recoveries] == ["abandoned"]
    assert [one.outcome for one in second.diagnosis.recoveries] == ["recovered"]
    assert second.diagnosis.recoveries[0].episode == first.episode_id


async def test_a_tool_that_raises_is_tried_again_once(house, store):
    """However often the model may try, a call is not repeated with ever longer waits."""

    class Stuck:
        """A house whose switches raise."""

        def __init__(self, task):
            self._house = house.environment(task)

        def tools(self):
            return [replace(one, function=self._raise) for one in self._house.tools()]

        def state(self):
            return self._house.state()

        def _raise(self, room, state):
            raise RuntimeError(f"the switch in the {room} is stuck, and not {state}")

    stuck = replace(
        house,
        environment=Stuck,
        definitions=tuple(safe_to_repeat(one) for one in house.definitions),
    )
    await evaluate(stuck, model=FunctionModel(diligent), store=store, run="r")
    results = [one for episode in store.select() for one in episode.results]
    assert {(one.failure.kind, one.attempts) for one in results} == {("tool_error", 2)}


def safe_to_repeat(definition):
    """The definition of a tool that may be called again without harm."""
    signature = replace(definition.signature, effects=Effects(idempotent=True))
    return replace(definition, signature=signature)
