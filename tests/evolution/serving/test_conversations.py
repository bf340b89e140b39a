"""Whatever happens to an experiment, a conversation has one arm, or has left it for good."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings, strategies as st

from agentkit import Agent, open_store
from agentkit.evolution.serving import CanaryRouter, LedgerWatch
from agentkit.testing import FunctionModel

NEW = "New words."
SHARES = {"none": 0.0, "all": 1.0, "half": 0.5}
PINS = {"pin": "weather", "pin all": ""}
steps = st.lists(
    st.sampled_from(["s", "t", "u", *SHARES, *PINS, "unpin", "roll back"]), max_size=14
)


class Course:
    """One experiment, and what happens to it and to three conversations."""

    def __init__(self, trial):
        self.trial, self.pins, self.stopped = trial, set(), False
        self.proposal = trial.propose("weather")
        trial.step(self.proposal, "canary")
        self.model = FunctionModel(lambda _: "ok")
        self.router = CanaryRouter(LedgerWatch(trial.store, refresh_seconds=0), share=0.5)
        self.agent = Agent(self.model, store=trial.store, router=self.router)
        self.arms = {}

    def take(self, step):
        if step in SHARES:
            self.router.share = SHARES[step]
        elif step in PINS:
            self.trial.pin(1, PINS[step])
            self.pins.add(PINS[step])
        elif step == "unpin":
            for tool_name in self.pins:
                self.trial.unpin(tool_name)
            self.pins.clear()
        elif step != "roll back":
            self.run(step)
        elif not self.stopped:
            self.trial.step(self.proposal, "rolled_back")
            self.stopped = True

    def run(self, session):
        result = asyncio.run(self.agent.run("hi", session_id=session))
        labels = result.episode.metadata
        words = next(t.text for t in self.model.requests[-1].tools if t.name == "weather")
        assert (words == NEW) == (labels.get("arm") == "candidate")
        assert not (words == NEW and (self.stopped or self.pins))
        self.arms.setdefault(session, []).append(labels.get("arm", "left" if labels else "apart"))


@settings(max_examples=40, deadline=None)
@given(taken=steps)
def test_a_conversation_has_one_arm(taken, make_trial):
    """Over any course of shares, pins and roll-backs labels are true, and nobody changes sides.

    What a run reads is what its labels say; a conversation never changes its arm, and never comes
    back once it left; nobody reads the candidate while it is pinned or after it was taken back.
    """
    course = Course(make_trial(open_store("memory:")))

    for step in taken:
        course.take(step)

    for arms in course.arms.values():
        begun = {arms[0]}
        assert set(arms) <= (begun if begun == {"apart"} else begun | {"left"})
        if "left" in arms:
            assert set(arms[arms.index("left") :]) == {"left"}
