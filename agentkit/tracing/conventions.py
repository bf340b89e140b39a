"""Names of OpenTelemetry's GenAI semantic conventions, and of what agentkit adds to them.

Version 1.41.1 is the last release that holds the GenAI conventions; since 1.42 they are kept in a
repository of their own, without a release so far. They are in development there, so a newer version
may rename what stands here. Written out because the package that holds the names calls this part
of them "incubating": it may change in any release of that package.
"""

from __future__ import annotations

from typing import Final

CONVENTIONS_VERSION: Final = "1.41.1"
SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.41.1"

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
AGENT: Final = "gen_ai.agent.name"
CONVERSATION: Final = "gen_ai.conversation.id"
OUTPUT_TYPE: Final = "gen_ai.output.type"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
REQUEST_TOP_P: Final = "gen_ai.request.top_p"
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
REQUEST_SEED: Final = "gen_ai.request.seed"
REQUEST_STREAM: Final = "gen_ai.request.stream"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHED_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105 - of words, not of doors
TOOL: Final = "gen_ai.tool.name"
TOOL_CALL: Final = "gen_ai.tool.call.id"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_DESCRIPTION: Final = "gen_ai.tool.description"
ERROR: Final = "error.type"

# What was said and returned: set only by who asks for content.
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
INSTRUCTIONS: Final = "gen_ai.system_instructions"
TOOL_DEFINITIONS: Final = "gen_ai.tool.definitions"
ARGUMENTS: Final = "gen_ai.tool.call.arguments"
RESULT: Final = "gen_ai.tool.call.result"
QUERY: Final = "gen_ai.retrieval.query.text"
DOCUMENTS: Final = "gen_ai.retrieval.documents"

DURATION: Final = "gen_ai.client.operation.duration"
DURATION_BUCKETS: Final = (
    *(0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64),
    *(1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92),
)
"""Upper bounds in seconds."""
TOKENS: Final = "gen_ai.client.token.usage"
TOKEN_BUCKETS: Final = tuple(float(4**power) for power in range(14))
"""Upper bounds in tokens, 1 to 67,108,864."""

INVOKE_AGENT: Final = "invoke_agent"
CHAT: Final = "chat"
EXECUTE_TOOL: Final = "execute_tool"
RETRIEVAL: Final = "retrieval"
RUN_GUARDRAIL: Final = "run_guardrail"
"""Proposed for the conventions, and not yet a part of them; its attributes here are agentkit's."""

EPISODE: Final = "agentkit.episode.id"
RESUMES: Final = "agentkit.episode.resumes"
STOP_REASON: Final = "agentkit.episode.stop_reason"
TURNS: Final = "agentkit.episode.turns"
REQUESTS: Final = "agentkit.usage.requests"
COST: Final = "agentkit.usage.cost_usd"
LIBRARY_VERSION: Final = "agentkit.library.version"
LIBRARY_SIZE: Final = "agentkit.library.size"
TOOL_VERSION: Final = "agentkit.tool.version"
TOOL_DIGEST: Final = "agentkit.tool.digest"
TOOL_DEPTH: Final = "agentkit.tool.depth"
TOOL_FLAT: Final = "agentkit.tool.flat"
TOOL_STATUS: Final = "agentkit.tool.status"
TOOL_ATTEMPTS: Final = "agentkit.tool.attempts"
CHILD_LEVEL: Final = "agentkit.tool.level"
FAILURE_KIND: Final = "agentkit.failure.kind"
FAILURE_LABEL: Final = "agentkit.failure.label"
REFINEMENT: Final = "agentkit.refine.round"
RETRIES: Final = "agentkit.retries"
RETRY_DELAY: Final = "agentkit.retry.delay_seconds"
SHORTLIST: Final = "agentkit.retrieval.shortlist.size"
OFFERED: Final = "agentkit.retrieval.offered.size"
GUARDRAIL: Final = "agentkit.guardrail.name"
GUARDRAIL_ALLOWED: Final = "agentkit.guardrail.allowed"
GUARDRAIL_CAUSE: Final = "agentkit.guardrail.cause"
