-- Programs of one value of a label that no other value has.
-- $label: name of the label
-- $value: its value
SELECT name, "fingerprint.program" AS program, count(*) AS modules, min(input) AS input
FROM modules
WHERE labels[$label] = $value
  AND "fingerprint.program" NOT IN (
    SELECT "fingerprint.program" FROM modules
    WHERE labels[$label] IS DISTINCT FROM $value AND "fingerprint.program" IS NOT NULL)
GROUP BY ALL
ORDER BY name, program
