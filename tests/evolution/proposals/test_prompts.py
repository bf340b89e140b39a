"""Prompts are versioned files that come with the package and are shown in the documentation."""

from __future__ import annotations

import hashlib
from string import Template

import pytest

from agentkit.evolution.proposers.streams import Prompt

NAMES = ["evolution_v1", "feedback_v1", "optimizer_v1"]

PUBLISHED = {
    "evolution_v1": "9f20b8fd61aba1e966ecad5c09eb1509aafedba35991cb2889e7c6411759029e",
    "feedback_v1": "e2babeeb774499b5ebf56878e5cf10d21cd5afda63be18c806f2f060d033bd02",
    "optimizer_v1": "26f0ae036164707ba904e13f964b5ea84b445a5455e33c5b478a14ba1956dc83",
}
"""SHA-256 of each version. A prompt that changes gets a new name: events refer to these hashes."""


@pytest.mark.parametrize("name", NAMES)
def test_a_published_prompt_does_not_change(name):
    """The hash in old events still names the text that was asked with."""
    prompt = Prompt.shipped(name)
    assert prompt.hash == hashlib.sha256(prompt.text.encode()).hexdigest() == PUBLISHED[name]


@pytest.mark.parametrize("name", ["evolution_v1", "feedback_v1"])
def test_prompts_have_the_places_that_are_filled(name):
    """Every place of a prompt is filled, and no other sign of a place stands in it."""
    template = Template(Prompt.shipped(name).text)
    assert template.is_valid()
    assert set(template.get_identifiers()) == {"tool", "schema", "episodes", "name"}
