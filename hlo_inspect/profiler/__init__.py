"""Content of recorded profiles (`.xplane.pb`), which `jax.profiler` and XProf write: programs, runs and executions."""
