"""Supervised fine-tuning on gold answers, written token for token as rollouts are."""
