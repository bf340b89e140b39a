"""The suites that every store passes, one subject a module; see ``store_conformance``."""
