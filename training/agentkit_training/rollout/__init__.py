"""2. What the policy does: rollouts over the runtime's own agent, token for token."""
