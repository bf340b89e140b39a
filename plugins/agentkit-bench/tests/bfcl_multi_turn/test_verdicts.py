"""Verdicts on user turns, as upstream's checker gives them."""

from __future__ import annotations

from dataclasses import replace

from agentkit.tools.definition import Effects


async def test_gold_calls_pass(play, task_of, calls):
    """What the gold answer does is right; a turn without gold calls is not judged."""
    filed = calls(("file_paper", {"title": "Plan"}), ("list_papers", {}))
    moved = calls(("move_paper", {"title": "Plan", "drawer": "archive"}))
    played = await play(task_of("multi_turn_base_0"), [filed], [moved], [])
    assert [verdict and verdict.passed for verdict in played.verdicts] == [True, True, None]


async def test_calls_of_one_step_run_in_order(play, task_of, calls):
    """The list shows the paper that was filed by the call before it."""
    filed = calls(("file_paper", {"title": "Plan"}), ("list_papers", {}))
    played = await play(task_of("multi_turn_base_0"), [filed], [], [])
    assert played.episodes[0].results[1].value == {"titles": ["Note", "Lease", "Plan"]}


async def test_the_order_does_not_hang_on_definitions(play, task_of, calls):
    """Under definitions that do not say what a tool does, calls keep their order as well."""

    def without_effects(own):
        return replace(own, signature=replace(own.signature, effects=Effects()))

    task = task_of("multi_turn_base_0")
    filed = calls(
        *[("file_paper", {"title": "Plan", "text": str(at)}) for at in range(50)],
        ("read_paper", {"title": "Plan"}),
    )
    played = await play(task, [filed], [], [], definition=without_effects)
    assert played.episodes[0].results[-1].value == "49"


async def test_another_way_to_the_same_state_passes(play, task_of, calls):
    """Neither order nor number of calls counts, as long as the results are among them."""
    steps = [
        calls(("list_papers", {})),
        calls(("file_paper", {"title": "Plan", "text": "wrong"})),
        calls(("file_paper", {"title": "Plan", "text": ""})),
        calls(("list_papers", {})),
    ]
    played = await play(task_of("multi_turn_base_0"), steps, [], [])
    assert played.verdicts[0].passed


async def test_a_different_state_fails(play, task_of, calls):
    """The finding says where the world differs."""
    filed = calls(("file_paper", {"title": "Plan", "text": "x"}), ("list_papers", {}))
    verdict = (await play(task_of("multi_turn_base_0"), [filed], [], [])).verdicts[0]
    assert not verdict.passed
    (finding,) = verdict.evidence
    assert (finding.kind, finding.parameter) == (
        "state_differs",
        "FilingCabinet.drawers.desk.papers.Plan",
    )


async def test_a_result_that_was_not_obtained_fails(play, task_of, calls):
    """The state is right, but nobody looked."""
    filed = calls(("file_paper", {"title": "Plan"}))
    verdict = (await play(task_of("multi_turn_base_0"), [filed], [], [])).verdicts[0]
    assert [finding.kind for finding in verdict.evidence] == ["response_differs"]


async def test_results_of_earlier_turns_count(play, task_of, calls):
    """What was read before need not be read again, if this turn calls anything at all."""
    task = task_of("multi_turn_miss_param_0")
    read = calls(("read_paper", {"title": "Lease"}))
    again = await play(task, [read], [calls(("list_papers", {}))])
    assert again.verdicts[1].passed
    silent = await play(task, [read], [])
    assert [finding.kind for finding in silent.verdicts[1].evidence] == ["missing_call"]


async def test_a_result_answers_for_one_gold_result(play, task_of, calls):
    """Two gold calls that return the same need two results."""
    task = task_of("multi_turn_base_0")
    gold = calls(("file_paper", {"title": "Plan"}), ("list_papers", {}))
    moved = calls(("open_drawer", {"drawer": "desk"}), ("list_papers", {}))
    played = await play(task, [gold], [moved], [])
    assert not played.verdicts[1].passed


async def test_a_turn_without_gold_changes_the_world(play, task_of, calls):
    """It is not judged itself, but the next one sees what it did."""
    task = task_of("multi_turn_miss_param_0")
    read = calls(("read_paper", {"title": "Lease"}))
    played = await play(task, [calls(("file_paper", {"title": "Plan"}))], [read])
    assert [verdict and verdict.passed for verdict in played.verdicts] == [None, False]


async def test_a_held_out_tool_can_not_be_called_early(play, task_of, calls):
    """Before it is offered the call fails and changes nothing; afterwards it runs."""
    shred = calls(("shred", {"title": "Note"}))
    played = await play(task_of("multi_turn_miss_func_0"), [shred], [shred])
    assert played.episodes[0].results[0].failure.kind == "unknown_tool"
    assert played.verdicts[1].passed


async def test_a_tool_that_raises_is_a_failed_call(play, task_of, calls):
    """The run goes on, and its result counts for nothing."""
    steps = [
        calls(("divide", {"a": 7, "b": 0})),
        calls(("divide", {"a": 7, "b": 2}), ("stamp", {"number": 3})),
    ]
    played = await play(task_of("multi_turn_base_1"), steps)
    assert played.episodes[0].results[0].failure.kind == "tool_error"
    assert played.verdicts[0].passed


async def test_the_last_turn_is_judged_at_the_step_limit(play, task_of, calls):
    """Upstream judges what was done when the steps ran out, if no user turn is left."""
    gold = calls(("divide", {"a": 7, "b": 2}), ("stamp", {"number": 3}))
    played = await play(task_of("multi_turn_base_1"), [gold, gold], max_steps=1)
    assert played.episodes[0].stop_reason == "step_limit"
    assert played.verdicts[0].passed


async def test_results_are_compared_as_written(play, task_of, calls):
    """A number with a fraction is another text than one without, as upstream has it."""
    gold = calls(("divide", {"a": 7.0, "b": 2.0}), ("stamp", {"number": 3}))
    assert (await play(task_of("multi_turn_base_1"), [gold])).verdicts[0].passed
    task = task_of("multi_turn_base_2")
    assert (await play(task, [calls(("power", {"base": 2, "exponent": 3}))])).verdicts[0].passed
    fraction = calls(("power", {"base": 2.0, "exponent": 3}))
    assert not (await play(task, [fraction])).verdicts[0].passed
