"""Word lists that tell a meaning from a value or from the values of an ``enum``."""

from __future__ import annotations

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
_TWO_WORD_COUNTRIES = (
    "united states",
    "united states of america",
    "united kingdom",
    "united arab emirates",
    "south africa",
    "south korea",
    "north korea",
    "new zealand",
    "saudi arabia",
    "sri lanka",
    "costa rica",
    "czech republic",
    "dominican republic",
    "el salvador",
    "great britain",
)

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
_WEEKDAYS = """
monday tuesday wednesday thursday friday saturday sunday
"""
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

COUNTRIES = frozenset({*_COUNTRIES.split(), *_TWO_WORD_COUNTRIES})
"""Names of countries; those that are also common given names or words are left out."""

LANGUAGES = frozenset(_LANGUAGES.split())
"""Names of natural languages."""

CURRENCIES = frozenset(_CURRENCIES.split())
"""The codes of ISO 4217 that stand in catalogues."""

WEEKDAYS = frozenset(_WEEKDAYS.split())
"""Days of the week."""

MONTHS = frozenset(_MONTHS.split())
"""Months of the year."""

COLOURS = frozenset(_COLOURS.split())
"""Names of colours."""

UNITS = frozenset(_UNITS.split())
"""Names and signs of units, and of systems of them."""
