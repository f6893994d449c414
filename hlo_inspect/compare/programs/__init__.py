"""Many compiles of a function, or ranks of a job: which program each of them has."""
