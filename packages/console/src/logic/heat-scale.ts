/** Colours of the key visualizer. */

/** From nothing to most: dark blue, violet, orange, yellow (the map "inferno"); its lightness grows all the way. */
const STOPS: readonly (readonly [number, number, number])[] = [
  [8, 9, 32],
  [66, 10, 104],
  [147, 38, 103],
  [221, 81, 58],
  [252, 165, 10],
  [252, 255, 164],
];

/**
 * Returns how far a value is on the way from 0 to `most`, from 0 to 1. Logarithmic: a key with a hundredth of the load
 * of the hottest one can still be told from one without any.
 */
export function intensity(value: number, most: number): number {
  if (value <= 0 || most <= 0) return 0;
  return Math.min(1, Math.log1p(value) / Math.log1p(most));
}

export function heatColour(share: number): readonly [number, number, number] {
  const at = Math.min(1, Math.max(0, share)) * (STOPS.length - 1);
  const below = Math.min(Math.floor(at), STOPS.length - 2);
  const [from, to] = [STOPS[below] ?? [0, 0, 0], STOPS[below + 1] ?? [0, 0, 0]];
  const rest = at - below;
  const mixed = (channel: 0 | 1 | 2): number => Math.round(from[channel] + (to[channel] - from[channel]) * rest);
  return [mixed(0), mixed(1), mixed(2)];
}

/** The largest value of a matrix; rows that are null count as empty. */
export function largest(values: readonly (readonly number[] | null)[]): number {
  let most = 0;
  for (const row of values) for (const value of row ?? []) most = Math.max(most, value);
  return most;
}
