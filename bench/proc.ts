/** What Linux tells about processes: CPU time and memory. */
import { readFileSync } from 'node:fs';

/** Clock ticks per second of /proc: 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;
const MICROS_PER_TICK = 1_000_000 / TICKS_PER_SECOND;

/** CPU time of a process so far, user and system, in µs; in steps of 10 ms. */
export function cpuMicros(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name may contain anything; the fields behind it begin with the state, field 3.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user, system] = [fields[11], fields[12]].map(Number);
  return ((user ?? 0) + (system ?? 0)) * MICROS_PER_TICK;
}

/** Proportional set size of a process, in bytes: what is shared with others counts in parts. */
export function pssBytes(pid: number): number {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  const [, kilobytes] = /^Pss:\s+(\d+) kB$/m.exec(rollup) ?? [];
  if (kilobytes === undefined) throw new Error(`process ${pid} has no Pss in its smaps_rollup`);
  return Number(kilobytes) * 1024;
}
