"""Several processes, one library: who reports, who decides, and how everybody hears of it."""
