"""``--adapter``: trained weights on a local model, wherever a command takes a model."""

from __future__ import annotations

import pytest

COMMANDS = {
    "run": ("run", "Hi"),
    "chat": ("chat",),
    "serve": ("serve",),
    "eval": ("eval", "tasks.jsonl"),
    "demo": ("demo",),
    "evolve": ("evolve", "--tasks", "tasks.jsonl"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_an_adapter_needs_a_local_model(invoke, command):
    """A model that computes elsewhere can not be given weights, and is not asked without them."""
    result = invoke(*command, "--model", "openai:gpt-4o-mini", "--adapter", "shop.gguf")
    assert result.exit_code == 2
    assert "--adapter adds to the weights of a local model" in result.stderr


def test_the_adapter_reaches_the_model(invoke, tmp_path):
    """An adapter that is not there is named by the plugin, not lost on the way."""
    pytest.importorskip("agentkit_local", reason="the plugin is not installed")
    model = tmp_path / "model.gguf"
    model.write_bytes(b"GGUF")
    result = invoke("run", "Hi", "--model", f"local:{model}", "--adapter", "my shop?.gguf")
    assert result.exit_code == 2
    assert "there is no adapter my shop?.gguf" in result.stderr
