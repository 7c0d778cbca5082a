/** How commands that run under a lock end: each rule broken, and the test that notices. */
import type { RuleMutation } from './mutation.ts';

const GUARD = 'packages/cli/src/run/guard-script.ts';
const PROCESSES = 'packages/base/src/node/processes/';

export const COMMAND_RULES: readonly RuleMutation[] = [
  {
    name: 'guard-program-started-once',
    rule: 'a program that a signal ended is started again (guard-script.ts GS1)',
    file: GUARD,
    find: '[ $? -ge 128 ] || break',
    replace: 'break',
    killedBy: {
      file: 'packages/cli/src/run/guard-script.test.ts',
      test: 'a program that signals end is started again (GS1)',
    },
  },
  {
    name: 'guard-kills-a-later-process',
    rule: 'the shell kills only what is certainly the process of the command (guard-script.ts GS2)',
    file: GUARD,
    find: 'look "$pid" && [ "$itsStart" != "$start" ] && exit',
    replace: 'look "$pid"',
    killedBy: {
      file: 'packages/cli/src/run/guard-script.test.ts',
      test: 'a process that started at another time is not killed (GS2)',
    },
  },
  {
    name: 'processes-read-without-another-look',
    rule: 'ids are read again when a process ended before the look at it (listing.ts LI1)',
    file: `${PROCESSES}listing.ts`,
    find: "(reads >= READS_MIN && !looks.includes('ended'))",
    replace: 'reads >= READS_MIN',
    killedBy: {
      file: `${PROCESSES}listing.test.ts`,
      test: 'a chain of processes that start one another is found, whenever they do (LI1)',
    },
  },
  {
    name: 'processes-read-once',
    rule: 'ids are read twice at least, as they may have wrapped around (listing.ts LI2)',
    file: `${PROCESSES}listing.ts`,
    find: 'const READS_MIN = 2;',
    replace: 'const READS_MIN = 1;',
    killedBy: {
      file: `${PROCESSES}listing.test.ts`,
      test: 'one that is missed by a reading as ids wrapped around is found by the next (LI2)',
    },
  },
  {
    name: 'shared-session-listed-once',
    rule: 'a shared session is listed again when one of its processes ended before the look at it (command-processes.ts CP4)',
    file: `${PROCESSES}command-processes.ts`,
    find: '|| !someEnded(command, rows, table)) return found;',
    replace: '|| looks >= 0) return found;',
    killedBy: {
      file: `${PROCESSES}command-processes.test.ts`,
      test: 'in a shared session one is found that was started by one that ended before its environment was read (CP4)',
    },
  },
  {
    name: 'signals-wait-for-a-whole-listing',
    rule: 'signals are sent to what any listing finds (command-processes.ts CP4)',
    file: `${PROCESSES}command-processes.ts`,
    find: "rowsOf(command, table, 'some')) ?? []",
    replace: 'rowsOf(command, table)) ?? []',
    killedBy: {
      file: `${PROCESSES}command-processes.test.ts`,
      test: 'signals are sent to what is found where no list can be whole (CP4)',
    },
  },
];
