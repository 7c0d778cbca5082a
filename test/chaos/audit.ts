import type { Write } from './workload.ts';

/**
 * Compares what clients were told of their writes with everything that ever happened to the keys.
 *
 * A1. What was acknowledged is there. A2. Nothing is there twice. A3. What was refused, or a compare that failed, is
 * not there. A4. What is there was asked for, of that key.
 */
export function auditWrites(
  writes: ReadonlyMap<string, Write>,
  events: ReadonlyMap<string, readonly string[]>,
): readonly string[] {
  const faults: string[] = [];
  const seen = new Set<string>();
  for (const [key, values] of events) {
    for (const value of values) {
      const write = writes.get(value);
      if (write?.key !== key) faults.push(`${key} was given ${value}, which nobody asked for`);
      else if (write.outcome === 'failed') faults.push(`${key} was given ${value}, which was reported as failed`);
      if (seen.has(value)) faults.push(`${key} was given ${value} twice: applied twice`);
      seen.add(value);
    }
  }
  for (const { key, value, outcome } of writes.values()) {
    if (outcome === 'done' && !seen.has(value))
      faults.push(`${key} was not given ${value}: an acknowledged write is lost`);
  }
  return faults;
}
