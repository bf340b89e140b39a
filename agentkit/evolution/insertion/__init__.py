"""InsertTool (CoCoDA, Algorithm 3): whether a new tool enters the library, and how."""
