"""What episodes show about tools, and what definitions should say for it. No model is asked."""
