-- Largest peak of device memory for each value of a label. Collect with --passes memory.
-- $label: name of the label
SELECT labels[$label] AS label, max("memory.peak_bytes") AS peak_bytes, arg_max(name, "memory.peak_bytes") AS name,
       count("memory.peak_bytes") AS modules
FROM modules
GROUP BY ALL
ORDER BY peak_bytes DESC NULLS LAST, label
