"""What an instruction, a computation and a module cost, by the rules of XLA's HloCostAnalysis.

The rules were read from `xla/service/hlo_cost_analysis.cc`; each names the function it follows. Work is counted as FLOPs (a
multiply-add is two), transcendentals, and the FLOPs among them that are matrix multiplications; bytes are those that
instructions read and write. All are exact integers, where XLA adds in float32.
"""
