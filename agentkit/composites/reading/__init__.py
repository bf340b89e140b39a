"""From text to nodes: each module reads one part of the language, and refuses the rest."""
