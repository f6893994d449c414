-- Findings by rule, for each value of a label: their number, modules, and the sum of their stakes.
-- $label: name of the label
SELECT rule, name, severity, labels[$label] AS label, count(*) AS findings, count(DISTINCT module) AS modules,
       sum(stake) AS stake, any_value(stake_unit) AS stake_unit
FROM findings JOIN (SELECT module, labels FROM modules) USING (module)
GROUP BY rule, name, severity, labels[$label]
ORDER BY findings DESC, rule, label
