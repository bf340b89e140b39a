"""Codes of what can be wrong with a composite, before it runs and while it runs."""

from __future__ import annotations

from typing import Literal, get_args

SourceCode = Literal[
    "syntax",  # not Python, or nested too deeply for its parser
    "too_large",  # bytes, nodes or nesting beyond the limits
    "not_one_function",
    "parameter",  # star, positional-only or underscore parameters, defaults that are no scalars
    "unknown_construct",  # while, try, lambda, import, global, with, attributes, ...
    "unknown_name",
    "unknown_tool",
    "unknown_method",
    "wrong_arity",
    "underscore_name",
    "name_shadowing",
    "recursive_call",
    "possibly_unbound",
    "missing_return",
    "unreachable_code",
    "constant_condition",
    "dead_call",  # the result of a call that changes nothing is never used
    "iterator_escapes",
    "nested_comprehension",
    "format_specification",
    "literal",  # bytes, complex, ellipsis, infinite or oversized literals
    "missing_argument",
    "unknown_argument",
    "repeated_argument",
    "argument_type",
    "result_type",
    "annotation",  # a type that has no JSON Schema
    "decorator",
    "example",
    "malformed_program",  # data that is no program
    "missing_child",
    "changed_child",  # a child's digest is not the pinned one
    "unbound_child",  # a child has no function in this process
]
"""What can be wrong with the text or the data of a composite."""

RunCode = Literal[
    # Python's own errors, one for one
    "zero_division",
    "type_error",
    "value_error",
    "index_error",
    "key_error",
    "overflow",
    # what Python would do and we do not
    "complex_number",
    "in_place_list",
    "string_format",
    "opaque_value",
    # limits
    "fuel",
    "integer_bits",
    "string_chars",
    "collection_items",
    "child_calls",
    "deadline",
    "nesting",
    # children
    "invalid_arguments",
    "child_failed",
    "child_timeout",
    "unserialisable_result",
    # contracts
    "precondition",
    "postcondition",
]
"""Why a run of a composite ended before its result."""

RUN_CODES: frozenset[str] = frozenset(get_args(RunCode))
"""The same as a set."""

ContractMode = Literal["off", "dry_run", "always"]
"""When pre- and postconditions are checked: never, in validation runs only, or at every call."""
