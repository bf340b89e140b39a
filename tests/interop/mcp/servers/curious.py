"""A server on stdio whose one tool asks the user for a size."""

import asyncio
import json

from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    ListToolsResult,
    TextContent,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

SIZE = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}


def curious(message="Which size?", schema=SIZE):
    """A server of which the one tool asks the user, in both ways of the protocol."""

    async def listed(context, params):
        order = {"name": "order", "description": "Order.", "inputSchema": {"type": "object"}}
        return ListToolsResult.model_validate({"tools": [order]})

    async def call(context, params):
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            reply = (params.input_responses or {}).get("size")
            if reply is None:
                form = ElicitRequestFormParams(message=message, requested_schema=schema)
                return InputRequiredResult(input_requests={"size": ElicitRequest(params=form)})
        else:
            reply = await context.session.elicit_form(message, schema, context.request_id)
        text = f"{reply.action} {json.dumps(reply.content)}"
        return CallToolResult(content=[TextContent(type="text", text=text)])

    return Server("curious", on_list_tools=listed, on_call_tool=call)


async def main():
    """Serve one client."""
    server = curious()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
