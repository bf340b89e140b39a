"""The extra ``openai``: chat completions and responses, through the official SDK."""

from shared import ask_provider, check

for model in ("openai:gpt", "openai-responses:gpt"):
    check(ask_provider(model), 144, model, "openai")
