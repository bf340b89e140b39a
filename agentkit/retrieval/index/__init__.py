"""A search index that grows with the library: immutable segments, shared between versions."""
