"""XLA's compilers on this machine: programs for other targets and other meshes, from their StableHLO."""
