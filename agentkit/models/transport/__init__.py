"""How bytes get to a model server and back: a tiny protocol, over httpx or aiohttp."""
