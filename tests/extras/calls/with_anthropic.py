"""The extra ``anthropic``: messages, through the official SDK."""

from shared import ask_provider, check

check(ask_provider("anthropic:claude"), 144, "anthropic:claude", "anthropic")
