"""The seven tools held to the contract, through the hall and, where it matters, from outside."""
