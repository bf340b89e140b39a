"""What words say about meanings: lists of values, and clues in names and descriptions.

The confidences were chosen by hand on the development parts of public catalogues; ``docs/types.md``
says how often they are right.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_COUNTRIES = """
afghanistan albania algeria andorra angola argentina armenia australia austria azerbaijan bahamas
bahrain bangladesh barbados belarus belgium belize benin bhutan bolivia botswana brazil brunei
bulgaria burundi cambodia cameroon canada chile china colombia croatia cuba cyprus czechia denmark
djibouti dominica ecuador egypt eritrea estonia ethiopia fiji finland france gabon gambia germany
ghana greece grenada guatemala guinea guyana haiti honduras hungary iceland india indonesia iran
iraq ireland israel italy jamaica japan kazakhstan kenya kuwait kyrgyzstan laos latvia lesotho
liberia libya liechtenstein lithuania madagascar malawi malaysia maldives mali malta mauritania
mauritius mexico moldova mongolia montenegro morocco mozambique myanmar namibia nepal
netherlands nicaragua nigeria norway oman pakistan panama paraguay peru philippines poland portugal
qatar romania russia rwanda senegal serbia seychelles slovakia slovenia somalia spain sudan
suriname sweden switzerland syria taiwan tajikistan tanzania thailand togo tunisia turkey
turkmenistan uganda ukraine uruguay uzbekistan venezuela vietnam yemen zambia zimbabwe
"""
_TWO_WORD_COUNTRIES = """
united states, united states of america, united kingdom, united arab emirates, south africa,
south korea, north korea, new zealand, saudi arabia, sri lanka, costa rica, czech republic,
dominican republic, el salvador, great britain
"""

_LANGUAGES = """
english spanish french german italian portuguese russian chinese mandarin cantonese japanese
korean arabic hindi bengali urdu turkish dutch swedish norwegian danish finnish polish czech greek
hebrew thai vietnamese indonesian malay ukrainian romanian hungarian persian swahili latin catalan
bulgarian serbian croatian slovak slovenian lithuanian latvian estonian tamil telugu
"""
_CURRENCIES = """
USD EUR GBP JPY CNY INR CAD AUD CHF NZD SEK NOK DKK SGD HKD KRW MXN BRL ZAR RUB TRY PLN CZK HUF
ILS THB IDR MYR PHP VND AED SAR EGP NGN KES ARS CLP COP PEN TWD PKR BDT UAH RON BGN ISK QAR KWD
"""
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday"
_MONTHS = """
january february march april may june july august september october november december
"""
_COLOURS = """
red green blue yellow orange purple pink black white grey gray brown cyan magenta violet turquoise
beige navy teal maroon gold silver
"""
_UNITS = """
celsius fahrenheit kelvin metric imperial standard km kilometer kilometers kilometre kilometres
mile miles m meter meters metre metres cm centimeter centimeters ft foot feet inch inches kg
kilogram kilograms g gram grams lb lbs pound pounds oz ounce ounces l liter liters litre litres ml
mph km/h kph m/s c f k degree degrees radian radians second seconds minute minutes hour hours day
days week weeks month months year years
"""


COUNTRIES = frozenset({*_COUNTRIES.split(), *" ".join(_TWO_WORD_COUNTRIES.split()).split(", ")})
"""Names of countries; those that are also common given names or words are left out."""

LANGUAGES = frozenset(_LANGUAGES.split())
"""Names of natural languages."""

CURRENCIES = frozenset(_CURRENCIES.split())
"""The codes of ISO 4217 that catalogues use."""

WEEKDAYS = frozenset(_WEEKDAYS.split())
"""Days of the week."""

MONTHS = frozenset(_MONTHS.split())
"""Months of the year."""

COLOURS = frozenset(_COLOURS.split())
"""Names of colours."""

UNITS = frozenset(_UNITS.split())
"""Names and signs of units, and of systems of units."""

_LAST_WORDS = """
date: date .9, day .3
datetime: datetime .9, timestamp .85
time: time .5
year: year .9
month: month .85
weekday: weekday .9
duration: duration .85
city: city .9, town .85
country: country .9
region: province .8, region .6
address: address .7
place: location .8, place .8, destination .7, origin .6
airport: airport .9
postal_code: zip .9, zipcode .95, postcode .95
latitude: lat .9, latitude .95
longitude: lon .9, lng .9, longitude .95
email: email .92, mail .7
phone: phone .9, telephone .9
url: url .92, uri .9, link .7, website .7
ip: ip .9
uuid: uuid .9, guid .9
language: language .85, lang .85, locale .7
currency: currency .9
colour: color .8, colour .8
file_path: path .75, filepath .9, filename .85, directory .7
secret: password .9, token .6, secret .8
count: limit .7, page .7, offset .7, quantity .7, count .8
money: price .75, cost .75, budget .75, income .75, revenue .75, salary .8, fee .7, balance .5
money: amount .5
percentage: percent .85, percentage .9
length: distance .85, height .75, width .7, radius .7, depth .4
mass: weight .6, mass .85
temperature: temperature .8
speed: speed .8, velocity .85
area: area .6
volume: volume .5
age: age .85
unit: unit .85
"""
_LAST_TWO_WORDS = """
email: mail address .95, email address .97
ip: ip address .95
id: mac address .6, wallet address .6
url: web address .9
postal_code: postal code .95, zip code .95
country: country code .95, country name .9
currency: currency code .95
language: language code .95
airport: airport code .95
colour: color code .85
phone: phone number .95, mobile number .9, contact number .85
file_path: file name .85
secret: api key .9
city: city name .9
: learning rate 0, time zone 0
moment: start time .7, end time .7
duration: travel time .6, waiting time .6
"""


def _clues(table: str) -> Mapping[str, tuple[str, float]]:
    """Words, each with the meaning that it suggests and how surely."""
    found: dict[str, tuple[str, float]] = {}
    for line in table.strip().splitlines():
        meaning, _, clues = line.partition(":")
        for clue in clues.split(","):
            words, _, confidence = clue.strip().rpartition(" ")
            found[words] = (meaning, float(confidence))
    return found


LAST_WORDS = _clues(_LAST_WORDS)
"""What the last word of a name suggests: the noun that the others describe."""

LAST_TWO_WORDS = _clues(_LAST_TWO_WORDS)
"""What the last two words suggest; this wins over the last one alone. An empty meaning is none."""

FIRST_WORDS = _clues("count: num .85, number .8, max .3")
"""What the first word suggests where the last one says nothing."""

TEXT_CLUES: Sequence[tuple[str, float, str, re.Pattern[str]]] = tuple(
    (meaning, confidence, needed, re.compile(pattern, re.DOTALL))
    for meaning, confidence, needed, pattern in (
        ("datetime", 0.9, "yyyy", r"yyyy-mm-dd[t ]+\W?hh"),
        ("datetime", 0.9, "time", r"date[- ]time|iso ?8601 (?:timestamp|datetime)"),
        ("date", 0.93, "yyyy", r"(?:yyyy[-/]mm[-/]dd|(?:mm[-/]dd|dd[-/]mm)[-/]yyyy)(?!\W?t?\W?hh)"),
        ("time", 0.85, "hh:mm", r"^(?!.*yyyy).*hh:mm"),
        ("time", 0.85, "hour", r"24-hour format|hours? and minutes"),
        ("email", 0.8, "mail", r"e-?mail address"),
        ("url", 0.75, "ur", r"\burl\b|\buri\b"),
        ("airport", 0.9, "a", r"\biata\b|airport code"),
        ("currency", 0.9, "currency", r"currency code|currency to convert"),
        ("currency", 0.9, "4217", r"iso[- ]4217"),
        ("language", 0.9, "language", r"language code"),
        ("language", 0.9, "639", r"iso[- ]639"),
        ("country", 0.9, "country", r"country code"),
        ("country", 0.9, "3166", r"iso[- ]3166"),
        (
            "city",
            0.6,
            "city",
            r"name of the city|city name|the city (?:where|in which|for which|to)",
        ),
        ("place", 0.8, "city", r"city and (?:the )?(?:state|country)|city, (?:state|country)"),
        ("place", 0.8, "san francisco, ca", r"san francisco, ca"),
        ("latitude", 0.8, "latitude", r"^(?!.*longitude).*\blatitude\b"),
        ("longitude", 0.8, "longitude", r"^(?!.*latitude).*\blongitude\b"),
        ("phone", 0.85, "phone number", r"phone number"),
        ("ip", 0.8, "ip", r"\bip address\b|\bipv[46]\b"),
        ("postal_code", 0.85, "code", r"postal code|zip code"),
        (
            "file_path",
            0.75,
            "path",
            r"path (?:to|of) (?:the |a )?(?:\w+ )?(?:file|folder|directory)",
        ),
        ("percentage", 0.75, "percent", r"as a percentage|in percent\b"),
        ("money", 0.7, "in ", r"in (?:us )?dollars|in usd\b|in (?:euros?|eur)\b"),
        (
            "length",
            0.75,
            "in ",
            r"in (?:(?:kilo|centi|milli)?met(?:er|re)s?|miles|feet|inches|[kc]m)\b",
        ),
        ("mass", 0.75, "in ", r"in (?:(?:kilo)?grams?|kg|pounds|lbs?)\b"),
        ("temperature", 0.7, "in ", r"in (?:degrees )?(?:celsius|fahrenheit|kelvin)"),
        ("speed", 0.75, "in ", r"in (?:m/s|km/h|mph|(?:met(?:er|re)s|kilomet(?:er|re)s) per )"),
        ("duration", 0.7, "in ", r"in (?:(?:milli)?seconds|minutes|hours|days|years|months)\b"),
        ("id", 0.6, "identifier", r"unique identifier|identifier of"),
        ("id", 0.6, "id of the", r"\bid of the\b"),
    )
)
"""Meaning, confidence, a text that must occur (a cheap test), and a pattern of descriptions."""
