-- Modules whose program changed while the name did not: names with several programs, the most first.
SELECT name, count(DISTINCT "fingerprint.program") AS programs, count(*) AS modules,
       min(changed) AS first_changed, max(changed) AS last_changed
FROM modules
WHERE "fingerprint.program" IS NOT NULL
GROUP BY ALL
HAVING programs > 1
ORDER BY programs DESC, name
