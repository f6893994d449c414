"""The cost of an instruction, a computation and a module, by the rules of XLA's HloCostAnalysis.

The rules follow `xla/service/hlo_cost_analysis.cc`; each names the function that it follows. Work is FLOPs (a multiply-add is
two), transcendentals, and the FLOPs of matrix multiplications. Bytes are the bytes that instructions read and write. All are
integers, except for the sums that stand for XLA's own, which are rounded as in XLA.
"""
