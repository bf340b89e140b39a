"""3. How the policy learns: the lean engine, TRL and verl, behind one interface."""
