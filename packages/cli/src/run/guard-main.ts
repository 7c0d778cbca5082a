/** What a guard runs when the process that ran the command is gone (guard.ts G2, G3). */
import type { CommandIdentity } from '@remora/base';

// Before anything is loaded, which takes a while: Node has set the signals back that the guard ignores.
for (const signal of ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2', 'SIGALRM'] as const) {
  process.on(signal, () => {});
}
const { endCommand, nodeClock, systemProcessTable } = await import('@remora/base');

const { command, graceMs } = JSON.parse(process.argv[2] ?? '') as { command: CommandIdentity; graceMs: number };

// Its looks at the command are timers, which do not keep a process alive.
const alive = setInterval(() => {}, 60_000);
await endCommand(command, { table: systemProcessTable(), clock: nodeClock(), graceMs });
clearInterval(alive);
