-- Near duplicates: different programs with equal numbers of instructions and collectives, and equal bytes of parameters and outputs.
SELECT count(DISTINCT "fingerprint.program") AS programs, count(*) AS modules, "module.instructions" AS instructions,
       "params.bytes" AS parameter_bytes, "outputs.bytes" AS output_bytes, "collectives.count" AS collectives,
       min(name) AS first_name, max(name) AS last_name
FROM modules
WHERE "fingerprint.program" IS NOT NULL
GROUP BY "module.instructions", "params.bytes", "outputs.bytes", "collectives.count"
HAVING programs > 1
ORDER BY programs DESC, instructions DESC
