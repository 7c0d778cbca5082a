/** Numbers, sizes and times as text. All times are in ms. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const integers = new Intl.NumberFormat('en-US');

export function count(value: number): string {
  return integers.format(Math.round(value));
}

/** `1 lock`, `2 locks`. */
export function counted(value: number, noun: string, plural = `${noun}s`): string {
  return `${count(value)} ${value === 1 ? noun : plural}`;
}

/** Binary units, three digits: `1.25 MiB`. */
export function bytes(value: number): string {
  if (!Number.isFinite(value) || value < 0) return 'unknown';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  let rest = value;
  while (rest >= 1_023.5 && unit < units.length - 1) {
    rest /= 1_024;
    unit++;
  }
  return `${unit === 0 ? String(Math.round(rest)) : threeDigits(rest)} ${units[unit]}`;
}

/** A rate or another measured number: three digits, `12.3k`. */
export function rate(value: number): string {
  if (!Number.isFinite(value)) return '–';
  if (value >= 999_500) return `${threeDigits(value / 1e6)}M`;
  if (value >= 9_999.5) return `${threeDigits(value / 1e3)}k`;
  if (value >= 999.5) return count(value);
  return value === 0 ? '0' : threeDigits(value);
}

/** A latency: `0.42 ms`, `1.2 s`. */
export function latency(ms: number): string {
  if (!Number.isFinite(ms) || ms < 0) return '–';
  return ms < 999.5 ? `${threeDigits(ms)} ms` : `${threeDigits(ms / SECOND)} s`;
}

function threeDigits(value: number): string {
  if (value === 0) return '0';
  const digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return value.toFixed(digits);
}

/** A span of time in its two largest units: `3 h 5 min`. */
export function span(ms: number): string {
  if (!Number.isFinite(ms)) return 'unknown';
  const rest = Math.max(0, ms);
  if (rest < SECOND) return `${Math.round(rest)} ms`;
  if (rest < 10 * SECOND) return `${(Math.floor(rest / 100) / 10).toFixed(1)} s`;
  if (rest < MINUTE) return `${Math.floor(rest / SECOND)} s`;
  if (rest < HOUR) return pair(rest, [MINUTE, 'min'], [SECOND, 's']);
  if (rest < DAY) return pair(rest, [HOUR, 'h'], [MINUTE, 'min']);
  return pair(rest, [DAY, 'd'], [HOUR, 'h']);
}

function pair(ms: number, [large, largeName]: [number, string], [small, smallName]: [number, string]): string {
  const first = Math.floor(ms / large);
  const second = Math.floor((ms % large) / small);
  return second === 0 ? `${first} ${largeName}` : `${first} ${largeName} ${second} ${smallName}`;
}

/** A span in whole seconds, whose width changes little while it counts: `45 s`, `2:05`, `1:02:05`. */
export function clockSpan(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / SECOND));
  if (seconds < 60) return `${seconds} s`;
  const two = (value: number): string => String(value).padStart(2, '0');
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor((seconds % 3_600) / 60)];
  return hours === 0 ? `${minutes}:${two(seconds % 60)}` : `${hours}:${two(minutes)}:${two(seconds % 60)}`;
}

/** How long ago `at` was, coarse enough not to change all the time: `just now`, `5 min ago`. */
export function ago(at: number, now: number): string {
  const ms = now - at;
  if (ms < -5 * SECOND) return `in ${coarse(-ms)}`;
  return ms < 5 * SECOND ? 'just now' : `${coarse(ms)} ago`;
}

/** One unit: `42 s`, `5 min`, `3 h`, `12 d`. */
export function coarse(ms: number): string {
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)} h`;
  return `${Math.floor(ms / DAY)} d`;
}

/** Local time with its offset, to the second: `2025-01-31 13:05:09 +01:00`. */
export function absolute(at: number): string {
  const date = new Date(at);
  if (!Number.isFinite(date.getTime())) return 'unknown';
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const offset = -date.getTimezoneOffset();
  const zone = `${offset < 0 ? '-' : '+'}${two(Math.floor(Math.abs(offset) / 60))}:${two(Math.abs(offset) % 60)}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())} ${zone}`;
}

/** Local time of the day: `13:05:09`. */
export function timeOfDay(at: number): string {
  return absolute(at).slice(11, 19);
}

export function percent(share: number): string {
  return Number.isFinite(share) ? `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %` : '–';
}
