-- Modules with the most bytes of parameters that are not donated.
SELECT name, "params.bytes" - "params.donated_bytes" AS not_donated_bytes, "params.bytes" AS parameter_bytes,
       "params.unused_bytes" AS unused_bytes, input
FROM modules
WHERE "params.bytes" > "params.donated_bytes"
ORDER BY not_donated_bytes DESC, input
