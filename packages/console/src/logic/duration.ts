/** Durations as the command line takes them: `250ms`, `5s`, `1m30s`. */
const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Returns ms; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  if (!/^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/.test(text)) return undefined;
  let ms = 0;
  for (const [, number = '', unit = ''] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) {
    ms += Number(number) * (UNITS[unit] ?? 0);
  }
  return ms;
}

/** What is wrong with a duration that was typed; undefined if nothing is. */
export function durationProblem(text: string): string | undefined {
  return parseDuration(text) === undefined ? 'Expected a number with a unit: 30s, 5m, 1m30s.' : undefined;
}
