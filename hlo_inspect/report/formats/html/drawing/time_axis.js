// The ticks of an axis of time at any zoom.

const TICK_ROOM = 100; // pixels from tick to tick
const UNITS = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];

// Times of ticks as steps of 1, 2 or 5, and their texts with the digits that tell them apart.
function timeTicks(from, to, width) {
  const least = ((to - from) * TICK_ROOM) / width;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= least);
  const first = Math.ceil(from / step - 1e-9), count = Math.floor(to / step + 1e-9) - first + 1;
  return Array.from({ length: Math.max(0, count) }, (_, at) => {
    const time = (first + at) * step;
    return { time, text: timeText(time, step, to) };
  });
}

// A time in the unit that fits `largest`, with as many digits as tell times apart that differ by a step.
function timeText(time, step, largest = time) {
  const [size, unit] = UNITS.find(([one]) => largest >= one) ?? UNITS.at(-1);
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / size) - 1e-9)));
  return `${(time / size).toFixed(digits)} ${unit}`;
}
