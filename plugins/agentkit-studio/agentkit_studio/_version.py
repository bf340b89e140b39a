"""The version of the plugin; it moves with the runtime's."""

__version__ = "0.1.0"
