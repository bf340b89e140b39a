"""1. What a policy is trained on: tasks, free of leakage between training and test."""
