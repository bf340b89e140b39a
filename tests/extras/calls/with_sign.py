"""The extra ``sign``: what changed a library is signed by ed25519, checked, and the tool called."""

import base64
import secrets

from shared import SQUARE_12, caller, check, square

from agentkit import Agent, open_store
from agentkit.evolution import ToolManager
from agentkit.library.chain import Ed25519Key, read_signer, verify_chain

_HEAD = bytes.fromhex("302e020100300506032b657004220420")  # of a private key, RFC 8410
_BODY = base64.b64encode(_HEAD + secrets.token_bytes(32)).decode()
key = read_signer(f"-----BEGIN PRIVATE KEY-----\n{_BODY}\n-----END PRIVATE KEY-----\n")
store = open_store("memory:")
ToolManager(store, tools=[square], signer=key).register([square], reason="the first tool")

signatures = [event.signature for event in store.events()]
assert [text.partition(":")[0] for text in signatures] == ["ed25519"], signatures
public = Ed25519Key(public=key.public)
assert verify_chain(store.events(), verifier=public) == ()

agent = Agent(caller(SQUARE_12), library=store.load(), tools=[square])
check(agent.run_sync("What is 12 squared?"), 144, "signed and called", "cryptography")
