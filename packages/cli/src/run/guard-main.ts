/** What a guard runs when the process that ran the command is gone (guard.ts). */
import { type CommandIdentity, endCommand, nodeClock, systemProcessTable } from '@remora/base';

const { command, graceMs } = JSON.parse(process.argv[2] ?? '') as { command: CommandIdentity; graceMs: number };

// Its looks at the command are timers, which do not keep a process alive.
const alive = setInterval(() => {}, 60_000);
await endCommand(command, { table: systemProcessTable(), clock: nodeClock(), graceMs });
clearInterval(alive);
