-- Compiles of one function by time: each program, and whether an earlier compile had it.
-- $name: name of the module, as jit_step
SELECT changed, "fingerprint.program" AS program,
       row_number() OVER (PARTITION BY "fingerprint.program" ORDER BY changed, input, line) > 1 AS is_repeated,
       "module.instructions" AS instructions, "params.bytes" AS parameter_bytes, input
FROM modules
WHERE name = $name
ORDER BY changed, input, line
