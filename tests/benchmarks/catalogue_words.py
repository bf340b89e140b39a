"""Which nouns the public catalogues use for many unrelated tools.

    python tests/benchmarks/catalogue_words.py FOLDER... > agentkit/evolution/validation/phrases/catalogue_words.txt

A folder holds the ``tools.jsonl.gz`` of one catalogue. Listed are the words that stand in the texts
of at least ``LEAST_TOOLS`` tools and of ``LEAST_CATALOGUES`` catalogues, mostly behind an article, a
preposition or another sign of a noun. Left out are the tools of ``corpora/second``, which measures
what the list does, and the words of ``SENSITIVE``, however common: those by which a text can do harm.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentkit.evolution.validation.wording import folded, is_plain, sections

LEAST_TOOLS = 20
LEAST_CATALOGUES = 3
SECOND = Path(__file__).parents[1] / "evolution" / "validation" / "corpora" / "second"
BEFORE_NOUNS = "the a an this each of its per in by from with for on at and or"
BEFORE_VERBS = "to can will must should may please not you they it which that"

SENSITIVE = {
    "whose data, and about whom": """user users customer client person people patient child children adult adults
        member members owner author team staff employee manager administrator admin agent assistant family friend
        relative neighbour competitor partner colleague contact contacts profile gender birth identity health medical
        disease personal private individual human players player participants student author artist host guest
        sender recipient caller traveller borrower vendor passengers whom your face life parent appointed office""",
    "secrets and permissions": """token tokens password credential credentials secret key keys authentication
        authorization access permission permissions account accounts login session sessions username cookie cookies
        api security privacy certificate role roles card""",
    "where data go": """email emails mail message messages chat post posts notification notifications webhook server
        servers link links url urls website web page site address addresses endpoint https http host phone file files
        folder directory path log logs history clipboard note notes comment comments upload download copy backup cache
        internet network channel queue output outputs report reports""",
    "instructions": """instruction instructions prompt prompts system conversation context question questions policy
        rule rules tool tools step steps action actions task tasks command commands request requests agent assistant
        behavior goal permission approval confirmation consent warning warnings note notice review""",
    "order and repetition": """first last next previous before after then again repeat start end beginning loop cycle
        times retry sequence chain turn background advance time moment day""",
    "comparisons and extremes": """more most less least best better top highest lowest maximum minimum half double extra
        additional other others another rest whole all every none majority first priority rank quality high higher low
        lower latest nearest future past further just final middle million greater initial current upcoming recent
        overall random quick primary principal major main deep three four reverse duplicate""",
    "choices": """default defaults choice preference preferences option options recommendation suggestion advice
        standard norm usual typical normal practice alternative instead replacement case chosen designed intended
        selected selection predefined initial automatic critical confidence""",
    "claims": """fact truth guarantee safety risk error errors failure bug problem issue issues trust official
        version release update updates support service maintenance need purpose use value point sense way successful
        suitable actual real exact effective efficient professional expert free live right simple unique active inactive
        existing failed published approved common ethical legal independent equivalent trained coverage insights""",
    "effects and money": """order orders booking payment payments transfer transaction purchase sale sales refund
        charge cost costs fee fees price money balance bill invoice trade credit delivery change changes deletion
        removal cancellation action execution submission registration subscription operation process budget funding
        financial income revenue reservation rental appointment ticket tickets grant license bond book books
        insurance paid storage store stores archive payload header exchange""",
    "places and services, which are values": """berlin california chicago paris europe european australia beijing boston
        canada india france london york tokyo america american amazon angeles asia pacific mars earth world worldwide
        national international west western east north south urban native nasa twitter github google postgresql
        cloudflare azure python cloud remote external online network""",
    "moves and bounds": """above against among beyond below behind near nearby neighborhood older shortest next tests than over
        upon down third late prior medium moderate back backward wide large largest small even around along reduced
        without except fixed mixed raise drop offset equal limited restricted restriction requirement required
        forward direct direction parallel partial special""",
    "praise and fitness": """accurate accuracy validity verified validated verification acceptable accessible appropriate
        comprehensive excellent important useful necessary essential should exists established compliance optimal
        optimized safe proper popular smart good fine rich clean clear easy competitive responsible recognized stopped
        closed affected disabled disable modern flexible advanced intelligence expertise reliable skill help
        ability capability capacity hard wants interested happening present presence regarding""",
    "what was done": """sent deleted removed purchased uploaded updated saved executed executes initiate insert install
        hosted installation deployed deployment edited editing modified modification received receive receiver submitted
        shared sharing stored logged created made changed carried carrying processed retained serves scanned involved
        enabled enabling resolved modifications authenticated encryption encrypted encoded encoding encode hash script
        hostname creating personalized launch shift switch gain repair played playing accessed accessing""",
    "people and their matters": """female male women infant bearer employment doctor director lawyer supplier consumer
        publisher self demographic age expense loan equity billing profit finance discount spouse abuse alcohol death
        claim decision demand violation incident loss hidden hello home apartment hospital hospitals visit meeting
        conference vaccination race neighbor infection drug""",
    "verbs as nouns": """call calls return returns search look set get read write close open stop cut put show
        send share move go make take give add create delete remove update edit save keep leave stay""",
}
"""Words that are never plain, and why."""


def main() -> None:
    """Print the list, with the command that made it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    words = sorted(common_nouns(parser.parse_args().folders))
    print("# Nouns of many unrelated tools of public catalogues, made by")
    print(
        "# tests/benchmarks/catalogue_words.py from bfcl, seal_tools, toolalpaca, metatool, nestful and"
    )
    print("# tooluniverse. A text may bring one of them (novelty.py).\n")
    print(textwrap.fill(" ".join(words), width=100))


def common_nouns(folders: list[Path]) -> Iterator[str]:
    """The nouns of many tools that are neither plain, nor units, nor sensitive."""
    tools: Counter[str] = Counter()
    catalogues: Counter[str] = Counter()
    as_noun: Counter[str] = Counter()
    as_verb: Counter[str] = Counter()
    nouns, verbs = set(BEFORE_NOUNS.split()), set(BEFORE_VERBS.split())
    for folder in folders:
        seen: set[str] = set()
        for text in texts_of(folder):
            words = re.findall(r"[^\W\d_]+|[.,:;()]", folded(text))
            for before, word in zip([".", *words], words, strict=False):
                as_noun[word] += before in nouns
                as_verb[word] += before in verbs
            tools.update(set(words))
            seen.update(words)
        catalogues.update(seen)
    sensitive = {word for words in SENSITIVE.values() for word in words.split()}
    units = {
        word for lines in sections("units").values() for line in lines for word in line.split()
    }
    for word, count in tools.items():
        is_common = count >= LEAST_TOOLS and catalogues[word] >= LEAST_CATALOGUES
        is_noun = as_noun[word] >= 2 * as_verb[word] and 5 * as_noun[word] >= count
        if is_common and is_noun and len(word) > 3 and word.isascii() and not word.endswith("ly"):
            forms = {word, word.rstrip("s"), f"{word}s", f"{word[:-3]}y"}
            if not (is_plain(word) or word in units or forms & sensitive):
                yield word


def texts_of(folder: Path) -> Iterator[str]:
    """All words of each tool of a catalogue, without those that the second corpus changes."""
    lines = (SECOND / "tools.jsonl").read_text(encoding="utf-8").splitlines()
    measured = {json.loads(line)["definition"]["name"] for line in lines}
    seen: set[str] = set()
    with gzip.open(folder / "tools.jsonl.gz", "rt", encoding="utf-8") as records:
        for record in map(json.loads, records):
            text = " . ".join([record["description"], *descriptions(record["parameters"])])
            if re.sub(r"\W", "_", record["name"]) not in measured and text not in seen:
                seen.add(text)
                yield text


def descriptions(schema: Any) -> Iterator[str]:
    """Every description in a schema, however deep."""
    for name, part in schema.items() if isinstance(schema, dict) else enumerate(schema):
        if name == "description" and isinstance(part, str):
            yield part
        elif isinstance(part, dict | list):
            yield from descriptions(part)


if __name__ == "__main__":
    main()
