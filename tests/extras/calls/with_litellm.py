"""The extra ``litellm``: two providers. litellm imports mcp for any call that carries tools."""

from shared import ask_provider, check

for model in ("litellm:openai/gpt-4o-mini", "litellm:anthropic/claude-sonnet-5-5"):
    check(ask_provider(model), 144, model, "litellm", "mcp")
