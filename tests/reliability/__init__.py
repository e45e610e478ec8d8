"""Nothing lost, nothing left: faults, kills, damage and erasure, and who looks for what is left."""
