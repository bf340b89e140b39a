"""Units that a text names, against those that stood there before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from agentkit.evolution.validation.folding import folded
from agentkit.evolution.validation.reasons import reason
from agentkit.evolution.validation.report import FailedCheck, ProposedChange
from agentkit.evolution.validation.schema_facts import ParameterFacts
from agentkit.evolution.validation.semantic.statements import about
from agentkit.evolution.validation.texts import Edit, mapping, rules_of

_UNITS: Mapping[str, Mapping[str, str]] = {
    "time": {
        "milliseconds": "millisecond milliseconds msec msecs ms millisekunde millisekunden milliseconde millisecondes milisegundo milisegundos 毫秒 ミリ秒",
        "seconds": "second seconds sec secs sekunde sekunden seconde secondes segundo segundos 秒",
        "minutes": "minute minutes min mins minuten minuto minutos 分钟 分間",
        "hours": "hour hours hr hrs stunde stunden heure heures hora horas 小时 時間",
        "days": "day days tag tage tagen jour jours dia dias 天数 天为 几天 日間 日数",
        "weeks": "week weeks woche wochen semaine semaines semana semanas 周数 星期 週間",
        "months": "month months monat monate monaten mois mes meses 个月 月数 か月 ヶ月",
        "years": "year years jahr jahre jahren annee annees ans ano anos 年数 年間 几年",
    },
    "temperature": {
        "celsius": "celsius °c ℃ 摄氏 摂氏",
        "fahrenheit": "fahrenheit °f ℉ 华氏 華氏",
        "kelvin": "kelvin 开尔文 ケルビン",
    },
    "length": {
        "millimetres": "millimetre millimetres millimeter millimeters mm 毫米 ミリメートル",
        "centimetres": "centimetre centimetres centimeter centimeters zentimeter cm 厘米 センチ",
        "metres": "metre metres meter meters metern metro metros 米为 メートル",
        "kilometres": "kilometre kilometres kilometer kilometers kilometern kilometro kilometros km kms 公里 千米 キロメートル キロ単位",
        "miles": "mile miles meile meilen milla millas 英里 マイル",
        "feet": "foot feet ft fuss pied pieds 英尺 フィート",
        "inches": "inch inches zoll pouce pouces pulgada pulgadas 英寸 インチ",
    },
    "mass": {
        "grams": "gram grams gramm gramme grammes gramo gramos 克为 グラム",
        "kilograms": "kilogram kilograms kilogramm kilogramme kilogrammes kilo kilos kilogramo kilogramos kg kgs 公斤 千克 キログラム",
        "pounds of weight": "lb lbs",
        "tonnes": "tonne tonnes ton tons tonnen tonelada toneladas 吨 トン",
    },
    "share": {
        "percent": "percent percentage % prozent pourcentage porcentaje 百分比 百分之 パーセント",
        "fraction": "fraction bruchteil 小数 割合を0",
        "basis points": "bps basispunkte basispunkten 基点",
    },
    "money": {
        "cents": "cent cents centime centimes centimo centimos centavo centavos pence 美分 以分",
        "euro": "euro euros eur € 欧元 ユーロ",
        "US dollar": "dollar dollars usd $ dolar dolares 美元 ドル",
        "pound sterling": "gbp £ sterling 英镑 ポンド",
        "yen": "yen jpy 日元 円",
        "yuan": "yuan rmb cny 人民币 元为 （元）",
        "swiss franc": "chf franken 瑞士法郎",
        "thousands": "thousands tausender milliers 万元 千円 万円",
    },
    "data": {
        "bytes": "byte bytes octet octets 字节 バイト",
        "kilobytes": "kilobyte kilobytes kb kib 千字节 キロバイト",
        "megabytes": "megabyte megabytes mb mib 兆字节 メガバイト",
        "gigabytes": "gigabyte gigabytes gb gib ギガバイト",
    },
}  # fmt: skip
"""Units by what they measure, in folded words of six languages."""

_WORDS = {
    word: (dimension, unit)
    for dimension, units in _UNITS.items()
    for unit, words in units.items()
    for word in words.split()
}
_UNSPACED = sorted(
    (word for word in _WORDS if not word.isascii() and len(word) > 1), key=len, reverse=True
)
_TOKEN = re.compile(r"[^\W\d_]+|°[cf]|[%€£$]")
_IN = re.compile(
    r"\b(?:in|as|en|als|measured in|expressed in|given in|unit:?|einheit:?|unite|unidad)\b|单位|単位|以|で(?:指定|表)|为单位|\d\s*$"
)


def units_agree(change: ProposedChange) -> Iterator[FailedCheck]:
    """A parameter's unit exchanged for another of the same kind.

    What counts as its unit: what its text said before, a ``Between`` rule's ``unit``, and the last
    part of its name (``duration_hours``). A text may name further units as long as it keeps that
    one (*in hours; 90 minutes are 1.5*).

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> right = {"parameters.hours": "Length in whole hours; round 90 minutes up to 2 hours."}
        >>> list(units_agree(rewrite("calendar_find_slot", right)))
        []
        >>> wrong = {"parameters.hours": "Length in minutes."}
        >>> [found.message for found in units_agree(rewrite("calendar_find_slot", wrong))]
        ['it says minutes where hours is counted in hours']
    """
    for edit, facts, text in _told(change):
        before = _units(_stated(change, facts))
        for dimension, named in _units(text).items():
            stated = before.get(dimension, set())
            if stated and not named & stated:
                yield reason(
                    "unit_contradicted",
                    "semantic",
                    edit,
                    edit.after,
                    message=f"it says {', '.join(sorted(named))} where {facts.path} is counted in {', '.join(sorted(stated))}",
                    advice="keep the unit; say how to convert into it when calls need that",
                )


def _told(change: ProposedChange) -> Iterator[tuple[Edit, ParameterFacts, str]]:
    """Each changed text about a parameter as a whole, and each new sentence elsewhere."""
    for edit in change.edits:
        if edit.kind == "parameter" and (facts := change.parameters.get(edit.parameter)):
            yield edit, facts, folded(edit.after)
    for edit, sentence in change.sentences:
        if (
            edit.kind != "parameter"
            and (facts := about(change, edit, sentence))
            and _IN.search(sentence)
        ):
            yield edit, facts, sentence.replace(facts.path.casefold(), "")


def _stated(change: ProposedChange, facts: ParameterFacts) -> str:
    words = mapping(change.base.description.parameters).get(facts.path, "")
    units = [
        str(getattr(rule, "unit", ""))
        for rule in rules_of(change.candidate)
        if getattr(rule, "parameter", None) == facts.path
    ]
    name = facts.path.rsplit(".", 1)[-1].removesuffix("[]").replace("_", " ")
    return folded(" . ".join([str(words), name, *units]))


def _units(text: str) -> dict[str, set[str]]:
    """The units that a text names, by what they measure."""
    found: dict[str, set[str]] = {}
    named = [_WORDS[word] for word in _TOKEN.findall(text) if word in _WORDS]
    if not text.isascii():
        for word in _UNSPACED:  # the longest first: ミリ秒 is no 秒
            if word in text:
                named.append(_WORDS[word])
                text = text.replace(word, " ")
        named += [_WORDS[char] for char in text if char in _WORDS]
    for dimension, unit in named:
        found.setdefault(dimension, set()).add(unit)
    return found
