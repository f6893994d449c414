"""Phases of instructions and collectives: by names, else by the data flow of a training step.

Imports what precedes it in `analysis`, and the flow of values; not `memory` or `time`.
"""
