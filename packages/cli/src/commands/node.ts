import { kebabName, OWN_UMASK, parseOptions } from '@remora/base';
import { createPinoLogger } from '@remora/base/node';
import { Command } from 'commander';
import { parseConfig, readConfigFile } from '../config-file.ts';
import { CommandError, exitCode } from '../exit-codes.ts';
import type { RunningNode, StartNode } from '../node/running-node.ts';
import { type NodeOptions, nodeSchema } from '../node-options.ts';
import { addSchemaFlags, schemaFlags } from '../schema-flags.ts';
import { aborted, type Shell, stopSignal } from '../shell.ts';
import { OptionReloads } from './option-reloads.ts';

const EXAMPLES = `
Examples:
  Run a single node to try things out:
    $ remora node --data-dir ./data

  Run the first of three machines (on the others, use --name n2 and n3 and their addresses):
    $ remora node --name n1 --data-dir /var/lib/remora \\
        --client-listen 10.0.0.1:7480 --peer-listen 10.0.0.1:7481 --http-listen 10.0.0.1:7482 \\
        --tls-cert n1.crt --tls-key n1.key --tls-client-ca ca.crt --tls-client-certificates required \\
        --tls-peer-cert n1-peer.crt --tls-peer-key n1-peer.key --tls-peer-ca peer-ca.crt \\
        --cluster-token prod-7f3a \\
        --initial-cluster n1=10.0.0.1:7481,n2=10.0.0.2:7481,n3=10.0.0.3:7481

  Read options from a file, and override one in the environment:
    $ REMORA_LOG_LEVEL=debug remora node --config /etc/remora.yaml

The file takes every option under its name without the leading dashes ("log-level: info"). A flag overrides its
variable, and the variable overrides the file.`;

export interface NodeCommandDeps {
  readonly shell: Shell;
  /** Loaded only when a node is started: the other commands do not need it. */
  loadStartNode(): Promise<StartNode>;
}

export function nodeCommand({ shell, loadStartNode }: NodeCommandDeps): Command {
  const command = new Command('node')
    .summary('Runs one node of a cluster.')
    .description('Runs one node of a cluster until SIGTERM or Ctrl-C.')
    .option('--config <file>', 'YAML or JSON file with options')
    .addHelpText('after', EXAMPLES);
  addSchemaFlags(command, nodeSchema);
  command.option('--print-options', 'print the resulting options as YAML and exit');
  return command.action(async (parsed: Record<string, unknown>) => {
    const readOptions = () => nodeOptions(parsed, shell.env);
    const options = readOptions();
    if (parsed.printOptions === true) return shell.out(showOptions(options));
    process.exitCode = await runNode(options, await loadStartNode(), readOptions);
  });
}

function nodeOptions(parsed: Readonly<Record<string, unknown>>, env: Shell['env']): NodeOptions {
  const file = typeof parsed.config === 'string' ? readConfigFile(parsed.config) : undefined;
  return parseOptions(nodeSchema, { flags: schemaFlags(nodeSchema, parsed), env, file });
}

/** The options as an equivalent configuration file. */
export function showOptions(options: NodeOptions): string {
  const lines: string[] = [];
  for (const [option, { type }] of Object.entries(nodeSchema.definitions)) {
    const value = options[option as keyof NodeOptions];
    if (value === undefined) continue;
    const shown = (type as { show(value: unknown): string }).show(value);
    lines.push(`${kebabName(option)}: ${JSON.stringify(shown)}`);
  }
  const text = lines.join('\n');
  parseConfig('options', text);
  return text;
}

/** Runs until a signal or a failure; returns the exit code. `readOptions` reads the options again. */
async function runNode(options: NodeOptions, startNode: StartNode, readOptions: () => NodeOptions): Promise<number> {
  process.umask(OWN_UMASK);
  const logger = createPinoLogger({ level: options.logLevel, pretty: options.logFormat === 'pretty' });
  const reloads = new OptionReloads(options, readOptions, logger);
  let running: RunningNode | undefined;
  const { signal, dispose } = stopSignal(() => {
    reloads.reload(running);
    return true;
  });
  // A joining node has only timers, which do not keep the process alive.
  const alive = setInterval(() => {}, 2 ** 30);
  try {
    const node = await startNode(options, signal, logger).catch((error: unknown) => {
      if (!signal.aborted) throw error;
      logger.info({ reason: String(signal.reason) }, 'stopped during startup');
      return undefined;
    });
    if (node === undefined) return exitCode('ok');
    running = node;
    // The only place that logs it, even if the node is already stopping.
    const failure = node.failed.catch((error: unknown) => {
      logger.error({ error }, 'the node cannot continue');
      return { error };
    });
    const end = await Promise.race([failure, aborted(signal)]);
    if (typeof end === 'object') {
      // At once: its ports and timers would keep the process and a broken node running. The log has everything that
      // counts.
      process.exit(exitCode(end.error instanceof CommandError ? end.error.exit : 'internal'));
    }
    logger.info({ reason: String(signal.reason) }, 'stopping');
    return await stopWithin(options.shutdownTimeout, node.stop(), () =>
      logger.error({ timeoutMs: options.shutdownTimeout }, 'did not stop within --shutdown-timeout; exiting anyway'),
    );
  } finally {
    clearInterval(alive);
    dispose();
  }
}

/** How long after a stop the process may still write its output. */
const LINGER_MS = 1_000;

/** If a stop hangs, the process ends: everything acknowledged is on disk, and a supervisor is waiting. */
async function stopWithin(timeoutMs: number, stopped: Promise<void>, onTimeout: () => void): Promise<number> {
  const deadline = setTimeout(() => {
    onTimeout();
    process.exit(exitCode('failed'));
  }, timeoutMs);
  try {
    await stopped;
  } finally {
    clearTimeout(deadline);
  }
  // The process ends when nothing is left to do; a forgotten handle does not keep it alive.
  setTimeout(() => process.exit(exitCode('ok')), LINGER_MS).unref();
  return exitCode('ok');
}
