"""What an instruction, a computation and a module cost, by the rules of XLA's HloCostAnalysis.

The rules were read from `xla/service/hlo_cost_analysis.cc`; each names the function it follows. Work is counted as FLOPs (a
multiply-add is two), transcendentals, and those of the FLOPs that are matrix multiplications; bytes are those that instructions
read and write. All are integers; only the sums that stand for XLA's own are rounded as it rounds them.
"""
