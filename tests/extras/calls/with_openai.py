"""The extra ``openai``: chat completions and responses, through a client of the official SDK."""

from shared import ask, check, client_of, provider

from agentkit.models import openai_model, openai_responses_model

for make in (openai_model, openai_responses_model):
    with provider() as server:
        client = client_of("openai", "AsyncOpenAI")(base_url=server.base_url, api_key="k")
        check(ask(make("gpt", client=client)), 144, make.__name__, "openai")
