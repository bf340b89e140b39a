"""Learned rules: what evolution found out about a tool, as data rather than words alone.

A rule says something that the contract (L1) leaves open and that calls kept breaking: which
values a parameter takes, its range, its form. It belongs to L3 of the definition. Everything that
a reader or a machine sees of it is derived from it: the sentence, the narrowed schema and with
that the grammar of local models, and the executor's refusal. So all of it is gone when the rule is.

A rule can only narrow. The contract itself never changes.

This is a lazy door: a tool without rules, as most are, loads none of it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
