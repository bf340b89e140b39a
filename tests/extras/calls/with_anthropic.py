"""The extra ``anthropic``: messages, through a client of the official SDK."""

from shared import ask, check, client_of, provider

from agentkit.models import anthropic_model

with provider() as server:
    client = client_of("anthropic", "AsyncAnthropic")(base_url=server.root_url, api_key="k")
    check(ask(anthropic_model("claude", client=client)), 144, "anthropic:claude", "anthropic")
