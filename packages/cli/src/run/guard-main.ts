/** The guard's program after the process that ran the command is gone (guard.ts G2, G3). */
import type { CommandIdentity } from '@remora/base';

// Before modules are loaded, which takes a while: Node has reset the signals that the guard ignored.
for (const signal of ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2', 'SIGALRM'] as const) {
  process.on(signal, () => {});
}
const { endCommand, nodeClock, systemProcessTable } = await import('@remora/base');

const { command, graceMs } = JSON.parse(process.argv[2] ?? '') as { command: CommandIdentity; graceMs: number };

// It looks at the command in timers, which do not keep a process alive.
const alive = setInterval(() => {}, 60_000);
await endCommand(command, { table: systemProcessTable(), clock: nodeClock(), graceMs });
clearInterval(alive);
