-- Modules with the most recomputation in one step. Collect with --tables cost_by_phase.
SELECT name, flops AS recompute_flops, matmul_flops AS recompute_matmul_flops, "cost.executed_flops" AS step_flops,
       round(flops / "cost.executed_flops", 3) AS share_of_flops, input
FROM cost_by_phase JOIN modules USING (module)
WHERE phase = 'recompute'
ORDER BY recompute_flops DESC NULLS LAST, input
