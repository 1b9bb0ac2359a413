// Numbers as a reader wants them, and the ends and ticks of scales. Nothing here knows the page.

export function bounds(...arrays) {
  let low = Infinity, high = -Infinity;
  for (const values of arrays) for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) [low, high] = [-1, 1];
  if (high - low <= 1e-9 * Math.max(Math.abs(low), Math.abs(high))) [low, high] = [low - 0.5, high + 0.5];
  return [low, high];
}

// A field of two answers, the second of which may be missing, and their difference, with one scale for all times: so that
// frames compare.
export function compare(own, other) {
  const difference = other && own.map((value, i) => value - other[i]);
  const [least, most] = bounds(difference ?? []);
  return {own, other, difference, range: bounds(own, other ?? []), reach: Math.max(-least, most)};
}

// Three digits, and no fewer than the whole part has; on a scale as many as tell its values apart.
export const short = (value, span) => {
  const size = Math.abs(value), near = span && span < size;
  const digits = near ? 4 + Math.floor(Math.log10(size / span)) : 3;
  if (size !== 0 && (size < 0.001 || size >= (near ? 1e7 : 1e5))) return value.toExponential(digits - 2);
  return String(Number(value.toPrecision(Math.max(digits, Math.floor(Math.log10(size || 1)) + 1))));
};
export const per = value => value === null || value === undefined ? "–" : value < 1e-4 ? value.toExponential(1) : value.toPrecision(3);
export const duration = ms => ms < 10 ? `${ms.toFixed(1)} ms` : ms < 1000 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(1)} s`;

export function ticks([low, high], count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(each => each * power).find(each => each >= rough);
  const found = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + 1e-9 * step; tick += step) found.push(Math.abs(tick) < 1e-9 * step ? 0 : tick);
  return found;
}
