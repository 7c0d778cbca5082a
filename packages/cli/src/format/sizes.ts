const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** Bytes for display: three digits and a unit. */
export function sizeText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1_000 && unit < UNITS.length - 1) {
    value /= 1_024;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)}${UNITS[unit]}`;
}

/** A duration, past or future, for display; -1 is never. */
export function agoText(ms: number): string {
  if (ms < 0) return 'never';
  const seconds = ms / 1_000;
  if (seconds < 10) return `${seconds.toFixed(1)}s`;
  if (seconds < 600) return `${Math.round(seconds)}s`;
  if (seconds < 36_000) return `${Math.round(seconds / 60)}m`;
  return seconds < 864_000 ? `${Math.round(seconds / 3_600)}h` : `${Math.round(seconds / 86_400)}d`;
}

/** A rate per second, for display. */
export function rateText(perSecond: number): string {
  return perSecond >= 10 || perSecond === 0 ? String(Math.round(perSecond)) : perSecond.toFixed(1);
}

/** A count with its noun. */
export function counted(count: number, thing: string, things = `${thing}s`): string {
  return `${count} ${count === 1 ? thing : things}`;
}
