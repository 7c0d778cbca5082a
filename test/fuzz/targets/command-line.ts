import { formatAddress } from '@remora/base';
import { CommandError, exitCode } from '../../../packages/cli/src/exit-codes.ts';
import { createProgram } from '../../../packages/cli/src/program.ts';
import { reportFailure, type Shell } from '../../../packages/cli/src/shell.ts';
import { LIVE_MEMORY_BASE_BYTES, liveNode } from '../live/live-node.ts';
import type { Target } from '../target.ts';

// Command lines, one argument a line: how they are parsed, and what the commands do with them at a running node.

type Program = Awaited<ReturnType<typeof createProgram>>;

const quiet = {
  out: () => {},
  raw: () => {},
  err: () => {},
  shown: false,
  terminal: false,
  ask: async () => undefined,
  askSecret: async () => undefined,
  input: async () => '',
};
const shell: Shell = { ...quiet, env: {} };
const loadStartNode = () => Promise.reject(new CommandError('usage', 'not here'));

/** Disables the actions of these commands, or of all commands if none are named. */
function idle(command: Program, names?: ReadonlySet<string>): Program {
  for (const child of command.commands) idle(child, names);
  if (command.commands.length === 0 && names?.has(command.name()) !== false) command.action(() => {});
  return command;
}

/** Errors that the process would report as its caller's mistake, not as its own. */
const expected = (error: unknown): boolean => reportFailure(error, shell) !== exitCode('internal');

const lines = (...commands: readonly string[]): readonly Uint8Array[] =>
  commands.map((command) => Buffer.from(command.split(' ').join('\n')));

function argvOf(bytes: Uint8Array): string[] {
  return Buffer.from(bytes).toString('utf8').split('\n');
}

const reading: Target = {
  name: 'command-line',
  runs: 60,
  corpus: () =>
    lines(
      'kv put greeting hello',
      'kv get --prefix orders/ --limit 10 --json',
      'lock run orders --ttl 10s -- true',
      'node --name n1 --client-listen 127.0.0.1:7480',
      'dev --nodes 3',
      'admin split 2 --key 0x00ff --no-wait',
      'admin move 2 n1 n4 --timeout 5s',
      'admin nodes maintenance n2 --for 30m',
      'admin unsafe-recover --dead n2,n3 --dry-run',
      '--help',
    ),
  async decode(bytes) {
    await idle(await createProgram({ shell, loadStartNode })).parseAsync(argvOf(bytes), { from: 'user' });
  },
  expected,
};

/**
 * They run other programs, start nodes, write files, or continue until they are stopped or until something that they
 * started is over.
 */
const NOT_DONE: ReadonlySet<string> = new Set(
  ['run', 'node', 'dev', 'watch', 'backup', 'restore', 'unsafe-recover']
    .concat(['split', 'merge', 'move', 'add-replica', 'remove-replica'])
    .concat(['drain', 'maintenance', 'decommission']),
);

const doing: Target = {
  name: 'live-command-line',
  memoryBaseBytes: LIVE_MEMORY_BASE_BYTES,
  runs: 40,
  corpus: () =>
    lines(
      'kv put greeting hello --json',
      'kv get greeting --timeout 500ms',
      'kv get --prefix gr --limit 10 --revision 9007199254740991 --keys-only',
      'kv delete --prefix gr',
      'lock ls --prefix orders/ --limit 5000 --json',
      'lock show orders/42 --namespace n',
      'lock release --force orders/42',
      'status --json',
      'admin nodes show n1 --json',
      'admin ranges ls --key greeting --limit 3',
      'admin ranges show 2',
      'admin hot --by writes --limit 2',
      'admin check --timeout 500ms',
      'admin why node:1',
      'admin operators history --range 2 --json',
      'admin operators cancel 3',
      'admin schedulers pause bytes --for 5s',
      'admin scatter --from a --to 0xff',
      'admin rebalance --dry-run --json',
      'admin ranges show --key aGk= --key-format base64',
      'admin transfer-leader 2 n1',
      'admin compact --revision 3 --yes',
      'admin settings set down-after 5m',
      'admin settings describe down-after',
    ),
  prepare: liveNode,
  async decode(bytes) {
    const node = await liveNode();
    const env = { REMORA_ENDPOINTS: formatAddress(node.options.clientListen) };
    const program = idle(await createProgram({ shell: { ...quiet, env }, loadStartNode }), NOT_DONE);
    try {
      await program.parseAsync(argvOf(bytes).map(harmless), { from: 'user' });
    } finally {
      await node.check();
    }
  },
  expected,
};

/** Nothing is read from standard input, and no other host is contacted. */
function harmless(argument: string): string {
  return argument === '-' || argument.startsWith('--endpoints') ? '_' : argument;
}

export const COMMAND_LINE_TARGETS: readonly Target[] = [reading, doing];
