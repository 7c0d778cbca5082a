import {
  bool,
  defineOptions,
  durationMs,
  int,
  nodeRandom,
  type Options,
  OWN_UMASK,
  parseOptions,
  string,
} from '@remora/base';
import { Command } from 'commander';
import { DevCluster } from '../dev/cluster.ts';
import { DEFAULT_NODES } from '../dev/settings.ts';
import { EXECUTABLE } from '../executable.ts';
import { DEFAULT_BASE_PORT } from '../local-ports.ts';
import { addSchemaFlags, schemaFlags } from '../schema-flags.ts';
import { aborted, type Shell, stopSignal } from '../shell.ts';

const devSchema = defineOptions({
  envPrefix: 'REMORA_DEV',
  definitions: {
    nodes: {
      type: int({ min: 1, max: 9 }),
      desc: `Number of nodes; by default as many as in the last run, or ${DEFAULT_NODES}.`,
    },
    dataDir: {
      type: string({ placeholder: '<path>' }),
      default: '.remora/dev',
      desc: 'Directory for the data and logs of the cluster; kept between runs.',
    },
    basePort: {
      type: int({ min: 1, max: 65_000 }),
      default: DEFAULT_BASE_PORT,
      desc: 'Client port of the first node. Its other ports follow; the ports of each further node are ten higher.',
    },
    tls: {
      type: bool(),
      default: false,
      desc: 'Use TLS, with certificates that are made in the data directory; clients have to show one.',
    },
    readyTimeout: {
      type: durationMs({ min: 1000 }),
      default: 60_000,
      desc: 'How long to wait until the cluster is ready.',
    },
  },
});

const EXAMPLES = `
Examples:
  Start three nodes on ports 7480, 7490 and 7500, with the data of the last run:
    $ remora dev

  Start a second cluster beside it:
    $ remora dev --data-dir .remora/other --base-port 8480

  Use TLS:
    $ remora dev --tls

A node that dies or is killed restarts after 500 ms. Ctrl-C stops all nodes. To start empty, remove the data directory.`;

export function devCommand(shell: Shell): Command {
  const command = new Command('dev')
    .summary('Runs a cluster on this machine.')
    .description('Runs a cluster of real node processes on this machine, for development.')
    .addHelpText('after', EXAMPLES);
  addSchemaFlags(command, devSchema);
  return command.action(async (parsed: Record<string, unknown>) => {
    await runDev(parseOptions(devSchema, { flags: schemaFlags(devSchema, parsed), env: shell.env }), shell);
  });
}

async function runDev(options: Options<typeof devSchema>, shell: Shell): Promise<void> {
  process.umask(OWN_UMASK);
  const { signal, dispose } = stopSignal();
  try {
    const cluster = await DevCluster.open({
      dataDir: options.dataDir,
      nodes: options.nodes,
      basePort: options.basePort,
      readyTimeoutMs: options.readyTimeout,
      tls: options.tls,
      nodeProgram: [process.execPath, EXECUTABLE, 'node'],
      random: nodeRandom(),
      say: shell.out,
    });
    try {
      await cluster.start(signal);
      if (!signal.aborted) shell.out(welcome(cluster, options, shell.env));
      await aborted(signal);
    } finally {
      shell.out('stopping ...');
      await cluster.stop();
      shell.out('stopped');
    }
  } finally {
    dispose();
  }
}

function welcome(cluster: DevCluster, { dataDir, basePort }: Options<typeof devSchema>, env: Shell['env']): string {
  const { certificates: tls } = cluster;
  const scheme = tls === undefined ? 'http' : 'https';
  const endpoints = cluster.endpoints.map((each) => (tls === undefined ? each : `https://${each}`)).join(',');
  const first = cluster.nodes[0];
  // If npm started it from a clone, the command is only linked in the workspace.
  const remora = env.npm_command === undefined ? 'remora' : 'npx remora';
  // Other commands use the default ports unless told otherwise.
  const usual = basePort === DEFAULT_BASE_PORT && tls === undefined ? '' : `  export REMORA_ENDPOINTS=${endpoints}\n`;
  const files = tls?.client;
  const secured =
    files === undefined
      ? ''
      : `  export REMORA_CACERT=${files.cacert} REMORA_CERT=${files.cert} REMORA_KEY=${files.key}\n`;
  const flags = files === undefined ? '' : ` --cacert ${files.cacert} --cert ${files.cert} --key ${files.key}`;
  return `
  endpoints  ${endpoints}
  HTTP       ${cluster.nodes.map(({ http }) => `${scheme}://${http}`).join('  ')}
  logs       ${dataDir}/n*.log

Authentication is off: every program on this machine can use the cluster, and no other machine can reach it.

Try, in another terminal:
${usual}${secured}  ${remora} kv put greeting hello
  ${remora} kv get greeting
  ${remora} lock run orders/42 -- sleep 10
  ${remora} status
  etcdctl --endpoints ${tls === undefined ? '' : 'https://'}${first?.client ?? endpoints}${flags} put greeting hello
  curl${flags} ${scheme}://${first?.http}/ready

A node that dies or is killed restarts after 500 ms. Ctrl-C stops the cluster; its data stays.`;
}
