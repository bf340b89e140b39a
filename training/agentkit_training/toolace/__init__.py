"""ToolACE-R's iterations: estimate, select, refine, fine-tune, look how much it helped."""
