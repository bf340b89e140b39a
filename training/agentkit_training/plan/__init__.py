"""What a run needs: memory of each device, tokens a step; nothing is loaded."""
