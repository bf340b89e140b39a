"""Algorithm 2 of CoCoDA as written: a planner model judges descriptions, conditions, examples."""
