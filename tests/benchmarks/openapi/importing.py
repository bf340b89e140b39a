"""How long it takes to make tools of an API description.

    python tests/benchmarks/openapi/importing.py [--operations N] [--rounds N]

The document is made by ``support.openapi_documents``: schemas in circles, ``oneOf``,
``nullable``, form bodies. Timed is ``openapi_tools`` on its JSON text, which includes decoding it;
then the digests of all definitions, which a store works out when they are kept.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from support.openapi_documents import large_openapi_document

from agentkit.interop.openapi import OpenApiTools, openapi_tools


def main() -> None:
    """Print one line for each version of OpenAPI."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operations", type=int, default=1000, metavar="N")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    options = parser.parse_args()
    openapi_tools(large_openapi_document(5))  # what is imported on first use is not timed
    for version in ("3.0.3", "3.1.0"):
        text = json.dumps(large_openapi_document(options.operations, version=version))
        made: list[OpenApiTools] = []
        seconds = timed(
            lambda text=text, made=made: made.append(openapi_tools(text)), options.rounds
        )
        definitions = made[-1].definitions
        hashed = timed(lambda found=definitions: [each.digest for each in found], 1)
        print(
            f"OpenAPI {version}: {len(text) / 1e6:.1f} MB, {options.operations:,} operations, "
            f"{len(definitions):,} tools; import {median(seconds):.2f} s "
            f"(best {min(seconds):.2f}, worst {max(seconds):.2f}) of CPU, "
            f"digests {hashed[0]:.2f} s"
        )


def timed(work: Callable[[], Any], rounds: int) -> list[float]:
    """CPU seconds of each round: other programs on the machine do not count."""
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return seconds


if __name__ == "__main__":
    main()
