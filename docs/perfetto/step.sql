-- Events of the traces that hlo-inspect writes: of the estimated step, and of a measured run ("execution").
-- A loop of many iterations has the event "iterations" in the place of those left out.
CREATE PERFETTO VIEW hlo_events AS
SELECT
  slice.id,
  slice.ts,
  slice.dur,
  slice.name,
  slice.category AS event,
  process.name AS program,
  thread.name AS stream,
  extract_arg(slice.arg_set_id, 'args.kind') AS kind,
  extract_arg(slice.arg_set_id, 'args.phase') AS phase,
  extract_arg(slice.arg_set_id, 'args.bytes') AS bytes,
  extract_arg(slice.arg_set_id, 'args.flops') AS flops,
  extract_arg(slice.arg_set_id, 'args.op_name') AS op_name,
  extract_arg(slice.arg_set_id, 'args.source') AS source,
  extract_arg(slice.arg_set_id, 'args.line') AS line
FROM slice
JOIN thread_track ON slice.track_id = thread_track.id
JOIN thread USING (utid)
JOIN process USING (upid)
WHERE slice.category IN ('kernel', 'issued', 'wait', 'iteration', 'iterations', 'execution');

-- Waits of the compute stream, by the instruction whose result it waits for.
CREATE PERFETTO VIEW hlo_waits AS
SELECT program, substr(name, length('wait for ') + 1) AS name, kind, phase, source, count(*) AS waits, sum(dur) AS dur
FROM hlo_events
WHERE event = 'wait'
GROUP BY 1, 2, 3, 4, 5;

-- The mean duration of each kernel, collective and copy in the estimate, beside that of the measured executions of its name.
CREATE PERFETTO VIEW hlo_kernels AS
SELECT
  name,
  max(kind) AS kind,
  max(phase) AS phase,
  max(source) AS source,
  avg(dur) FILTER (WHERE event IN ('kernel', 'issued')) AS estimated_dur,
  avg(dur) FILTER (WHERE event = 'execution') AS measured_dur
FROM hlo_events
WHERE event IN ('kernel', 'issued', 'execution')
GROUP BY name;
