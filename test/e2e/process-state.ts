import { readdirSync, readFileSync } from 'node:fs';

/** Whether a process with this id exists. One that has ended but was not waited for does not count. Linux only. */
export function isRunning(pid: number): boolean {
  return !['', 'Z', 'X'].includes(stateOf(pid));
}

export function isStopped(pid: number): boolean {
  return stateOf(pid) === 'T';
}

function stateOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2)[0] ?? '';
  } catch {
    return '';
  }
}

/** The nice values of the threads of a process: higher ones leave the processor to others. Linux only. */
export function nicenessOfThreads(pid: number): readonly number[] {
  return readdirSync(`/proc/${pid}/task`).map((thread) => {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]);
  });
}

/** The processes of this parent whose command line contains the text. */
export function childrenOf(parent: number, text: string): readonly number[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      const [, found] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      const line = readFileSync(`/proc/${name}/cmdline`, 'utf8');
      return Number(found) === parent && line.includes(text) ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}
