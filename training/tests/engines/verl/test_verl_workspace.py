"""What the rollouts of a worker share: the same tasks, and each step's version of the library."""

from __future__ import annotations

import dataclasses

import pytest

from agentkit import open_store
from agentkit.evolution import ToolManager
from agentkit.library import LibraryChange
from agentkit_training import PolicyModel, tiny_policy
from agentkit_training.engines.verl.workspace import RowInfo, Workspace, verl_rows
from agentkit_training.errors import TrainingError


@pytest.fixture
def versions(settings, tmp_path):
    """A workspace whose library has a second version, with another text of each tool."""
    url = f"sqlite:///{tmp_path}/library.db"
    space = Workspace(settings=settings(library=url, weights="fixed", keeps_episodes=True))
    store = open_store(url)
    ToolManager(store).register(space.parts.train.definitions, reason="tools")
    changed = [
        dataclasses.replace(
            one, description=dataclasses.replace(one.description, summary="New: it does this.")
        )
        for one in space.parts.train.definitions
    ]
    store.commit(LibraryChange(upserts=tuple(changed), proposal_id="new-texts"), expected_version=1)
    yield space
    store.close()


def first_row(space):
    return next(verl_rows(space.parts.train, part="train")).extra_info


async def test_rollouts_have_the_texts_of_the_version_that_was_asked_for(versions, policy):
    """An older version stays what it was, whatever has been committed since."""
    model = PolicyModel(policy, max_tokens=4)
    read = []
    for version in (1, 2, 1):
        rollout = await versions.rollout(
            model, first_row(versions), version=version, temperature=1.0
        )
        assert rollout.library_version == version
        read.append(policy.tokenizer.decode(rollout.sequences[0].prompt))
    assert versions.newest_version == 2
    assert "New: " in read[1]
    assert read[0] == read[2]
    assert "New: " not in read[0]


async def test_episodes_are_kept_for_who_learns_from_them(versions, policy):
    """The store gets each episode judged and diagnosed, and the rollout has its weight."""
    rollout = await versions.rollout(
        PolicyModel(policy, max_tokens=4), first_row(versions), version=2, temperature=1.0
    )
    store = open_store(versions.settings.library)
    (kept,) = store.select()
    store.close()
    assert kept.episode_id == rollout.episodes[0].episode_id
    assert kept.diagnosis is not None
    assert rollout.labels == ("missing_tool_call",)
    assert rollout.weight == 1.5


def kept_by(space):
    """How many episodes the store holds."""
    store = open_store(space.settings.library)
    count = sum(1 for _ in store.select())
    store.close()
    return count


@pytest.mark.parametrize("part", ["validation", "test"])
async def test_episodes_of_held_out_tasks_are_not_kept(versions, policy, part):
    """What verl is validated with is no evidence for the library."""
    row = next(verl_rows(dict(versions.parts)[part], part=part)).extra_info
    model = PolicyModel(policy, max_tokens=4)
    rollout = await versions.rollout(model, row, version=1, temperature=0.0)
    assert rollout.episodes
    assert kept_by(versions) == 0


async def test_episodes_of_rollouts_with_a_fault_are_not_kept(versions):
    """What went wrong without the policy teaches the library nothing."""
    model = PolicyModel(tiny_policy(context_tokens=64), max_tokens=4)  # no prompt fits
    rollout = await versions.rollout(model, first_row(versions), version=1, temperature=1.0)
    assert rollout.fault
    assert rollout.episodes
    assert kept_by(versions) == 0


async def test_without_a_library_tasks_have_their_own_texts(settings, policy):
    """Version 0 is no library, and weights are 1 where none are asked for."""
    space = Workspace(settings=settings())
    rollout = await space.rollout(
        PolicyModel(policy, max_tokens=4), first_row(space), version=0, temperature=1.0
    )
    assert (space.newest_version, rollout.library_version, rollout.weight) == (0, 0, 1.0)


async def test_a_task_of_another_export_is_named(settings, policy):
    """Rows and settings that do not belong together say so."""
    space = Workspace(settings=settings())
    row = RowInfo(index=0, part="train", task_id="gone")
    with pytest.raises(TrainingError, match="no task 'gone' among the train tasks"):
        await space.rollout(PolicyModel(policy), row, version=0, temperature=1.0)
