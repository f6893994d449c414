"""Files beside a module that state how it was compiled: flags, options, devices, StableHLO. Imports errors only."""
