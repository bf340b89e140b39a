"""7. Policy, metadata and library learn together: ToolDNA, SEAL and CoCoDA as one loop."""
