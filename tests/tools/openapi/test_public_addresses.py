"""A description from elsewhere can not send calls into the own network."""

import pytest

from agentkit.errors import ToolFailed
from agentkit.tools.sources.openapi import CallPolicy, openapi_tools
from agentkit.tools.sources.openapi.public_addresses import is_public

ONCE = CallPolicy(max_retries=0)
ELSEWHERE = "https://specs.example.com/api.json"


def sent_to(make, url):
    """A description whose calls go to ``url``."""
    return {**make.operation(), "servers": [{"url": url}]}


@pytest.mark.parametrize("written", ["127.0.0.1", "localhost", "0x7f.1", "2130706433"])
async def test_a_remote_description_may_not_name_a_private_server(make, live, bound, written):
    """However the address is written, nothing is sent there."""
    url = live.url.replace("127.0.0.1", written)
    tools = bound(sent_to(make, url), reference=ELSEWHERE)
    with pytest.raises(ToolFailed, match="is not a public address") as caught:
        await tools["it"]()
    assert f"can allow it with server='{url}'" in str(caught.value)
    assert live.seen == []


async def test_the_caller_may_name_any_server(make, live, bound):
    """What the person who runs the program writes is meant."""
    tools = bound(sent_to(make, "http://10.0.0.1"), reference=ELSEWHERE, server=live.url)
    await tools["it"]()
    assert len(live.seen) == 1


@pytest.mark.parametrize(
    "reference", ["", "api.json", "http://localhost:1/api.json", "http://192.168.0.9/api.json"]
)
async def test_a_description_from_near_may_name_servers_that_are_near(make, live, bound, reference):
    """A file of the caller's, or an API under development, is nobody else's word."""
    await bound(sent_to(make, live.url), reference=reference)["it"]()
    assert len(live.seen) == 1


async def test_a_name_that_nobody_knows_is_told_as_such(make):
    """A failed look-up is not a refusal."""
    given = sent_to(make, "https://api.invalid")
    async with openapi_tools(given, reference=ELSEWHERE, policy=ONCE) as tools:
        with pytest.raises(ToolFailed, match="could not be reached"):
            await tools["it"]()


PRIVATE = """
    10.1.2.3 172.16.0.1 192.168.1.1 100.64.0.1 169.254.169.254 0.0.0.0 224.0.0.1 255.255.255.255
    ::1 :: fe80::1%eth0 fd00::1 ff02::1 ::ffff:10.0.0.1 64:ff9b::7f00:1 2002:7f00:1::
"""


@pytest.mark.parametrize("address", PRIVATE.split())
def test_addresses_for_special_purposes(address):
    """Those of the own network, also inside of IPv6, are not public."""
    assert not is_public(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700:4700::1111", "64:ff9b::101:101"])
def test_addresses_for_everyone(address):
    """Addresses of the public network are public."""
    assert is_public(address)
