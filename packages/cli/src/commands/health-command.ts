import { spawn } from 'node:child_process';
import type { HealthCheck } from 'remora';

export interface HealthFlags {
  readonly healthCmd?: string;
  readonly healthInterval?: number;
  readonly healthFailures?: number;
}

/** Returns a check that runs a shell command once the work is in progress; undefined if there is no command. */
export function healthOf(flags: HealthFlags, isInFlight: () => boolean): HealthCheck | undefined {
  const { healthCmd, healthInterval, healthFailures } = flags;
  if (healthCmd === undefined) return undefined;
  return {
    check: (signal) => (isInFlight() ? succeeds(healthCmd, signal) : undefined),
    ...(healthInterval === undefined ? {} : { interval: healthInterval }),
    ...(healthFailures === undefined ? {} : { failures: healthFailures }),
  };
}

/**
 * Resolves if the exit code is 0. The command is killed when the result is no longer needed. @throws Error that says
 * how it ended.
 */
function succeeds(command: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn('sh', ['-c', command], {
      stdio: ['ignore', 'ignore', 'inherit'],
      signal,
      killSignal: 'SIGKILL',
    });
    child.once('error', reject);
    child.once('exit', (code, killedBy) => {
      if (code === 0) resolve();
      else reject(new Error(code === null ? `it was killed by ${killedBy}` : `it exited with code ${code}`));
    });
  });
}
