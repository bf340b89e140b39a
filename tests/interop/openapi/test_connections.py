"""Connections are closed while their event loop still works, whatever becomes of the tools."""

import asyncio
import gc

import pytest

from agentkit.interop.openapi import openapi_tools

CALLS = 8


class Server:
    """Answers over real sockets, and counts those that are open."""

    def __init__(self):
        self.open = 0
        self.seen = 0

    async def answer(self, reader, writer):
        """One connection, kept alive."""
        self.open += 1
        self.seen += 1
        try:
            while await reader.readline():
                while (await reader.readline()).strip():
                    pass
                await asyncio.sleep(0.02)  # so that calls at a time need connections of their own
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        finally:
            self.open -= 1
            writer.close()


async def called(server, tools):
    """Open some connections at a time."""
    await asyncio.gather(*(tools["it"]() for _ in range(CALLS)))
    assert server.open == CALLS


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_tools_dropped_just_before_the_loop_ends(make, live, steps):
    """The sockets are closed although ``asyncio.run`` cancels what runs at its end."""

    async def main():
        tools = openapi_tools(make.operation(), server=live.url)
        live.planned = [0.02] * CALLS
        await asyncio.gather(*(tools["it"]() for _ in range(CALLS)))
        del tools
        for _ in range(steps):
            await asyncio.sleep(0)

    asyncio.run(main())
    gc.collect()  # an unclosed socket warns here, and warnings are errors


def test_tools_used_on_one_loop_after_another(make, live):
    """Each ``asyncio.run`` has connections of its own, which end with it."""
    tools = openapi_tools(make.operation(), server=live.url)
    for _ in range(2):
        asyncio.run(tools["it"]())
    gc.collect()
    assert len(live.seen) == 2


async def test_tools_dropped_in_a_loop_that_goes_on(make):
    """Their connections are closed soon after, so that a server which makes tools leaks none."""
    server = Server()
    async with await asyncio.start_server(server.answer, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        tools = openapi_tools(make.operation(), server=f"http://127.0.0.1:{port}")
        await called(server, tools)
        del tools
        gc.collect()
        async with asyncio.timeout(5):
            while server.open:
                await asyncio.sleep(0.01)
        assert server.open == 0


async def test_tools_closed_by_hand(make):
    """``async with`` closes at once; the tools can be used again and open anew."""
    server = Server()
    async with await asyncio.start_server(server.answer, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with openapi_tools(make.operation(), server=f"http://127.0.0.1:{port}") as tools:
            await called(server, tools)
        async with asyncio.timeout(5):
            while server.open:
                await asyncio.sleep(0)
        async with tools:
            await called(server, tools)
    assert server.seen == 2 * CALLS
