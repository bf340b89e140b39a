"""3. How the policy learns: the lean engine and TRL behind one interface."""
