/** The kinds of servers that can be measured, with the settings that they have in production. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isUsable } from '../test/e2e/node-process.ts';
import { compiledBench } from './compiled-bench.ts';
import { type Access, type MemberAddress, ProcessCluster, type ServerKind } from './process-cluster.ts';
import { nodeCommand } from './profiled.ts';
import type { EntryChoice } from './system.ts';

const ETCD_PROGRAM = '/usr/bin/etcd';
const LOAD_PROGRAM = 'load-main.js';
const PROBE_TIMEOUT_MS = 1_000;

export interface ServerSettings {
  readonly dir: string;
  readonly entry: EntryChoice;
}

export interface RemoraSettings extends ServerSettings {
  readonly name: string;
  /** The working tree whose build is measured, its SDK included. */
  readonly root: string;
  /** Where each process leaves its CPU profile; undefined takes none. */
  readonly profileDir: string | undefined;
}

export interface RemoraVariant {
  readonly access?: Access;
  /** More flags of a member. */
  flags?(member: string): Readonly<Record<string, string>>;
}

export function remora(
  { name, root, profileDir, ...settings }: RemoraSettings,
  { access, flags }: RemoraVariant = {},
): ProcessCluster {
  const program = join(root, 'packages/cli/bin/remora.mjs');
  const node = (who: string) => nodeCommand(profileDir, `${name}-${who}`);
  const kind: ServerKind = {
    name,
    workloads: ['put', 'get', 'lock', 'unary-put', 'unary-get', 'handoff'],
    cwd: settings.dir,
    command: (member, all) => [
      ...node(member.name),
      ...[program, 'node', ...remoraFlags(member, all), ...asArguments(flags?.(member.name) ?? {})],
    ],
    isReady: async ({ health }) => {
      const body = await get(health, '/ready');
      return body !== undefined && isUsable(body);
    },
    isLeader: async ({ health }) => /^remora_range_leader(\{.*\})? 1$/m.test((await get(health, '/metrics')) ?? ''),
    ...(access !== undefined && { access }),
    api: (workload) => (workload.startsWith('unary') ? 'etcd' : 'sdk'),
    loadProgram: [...node('client'), compiledBench(root, LOAD_PROGRAM)],
  };
  return new ProcessCluster(kind, settings);
}

/** @throws Error with advice when etcd is not installed. */
export function etcd({ root, ...settings }: ServerSettings & { readonly root: string }): ProcessCluster {
  if (!existsSync(ETCD_PROGRAM)) {
    throw new Error(`--peer etcd needs ${ETCD_PROGRAM}; on Debian: apt-get install etcd-server`);
  }
  const kind: ServerKind = {
    name: 'etcd',
    workloads: ['put', 'get', 'lock', 'unary-put', 'unary-get', 'handoff'],
    cwd: settings.dir,
    command: (member, all) => [ETCD_PROGRAM, ...etcdFlags(member, all)],
    isReady: async ({ client }) => (await get(client, '/health'))?.includes('"true"') === true,
    isLeader: async ({ client }) => /^etcd_server_is_leader 1$/m.test((await get(client, '/metrics')) ?? ''),
    api: () => 'etcd',
    loadProgram: [process.execPath, compiledBench(root, LOAD_PROGRAM)],
  };
  return new ProcessCluster(kind, settings);
}

function remoraFlags(
  { name, dataDir, client, peer, http, health }: MemberAddress,
  all: readonly MemberAddress[],
): string[] {
  const flags = {
    name,
    'data-dir': dataDir,
    'client-listen': client,
    'peer-listen': peer,
    'http-listen': http,
    'health-listen': health,
    'initial-cluster': all.map((member) => `${member.name}=${member.peer}`).join(','),
    // Its first peer port is as good a name as any for a cluster that lives for one run.
    'cluster-token': `bench-${all[0]?.peer}`,
    // What is measured is one range, however long the load lasts.
    'auto-split': 'false',
  };
  return asArguments(flags);
}

function asArguments(flags: Readonly<Record<string, string>>): string[] {
  return Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, value]);
}

function etcdFlags({ name, dataDir, client, peer }: MemberAddress, all: readonly MemberAddress[]): string[] {
  const flags = {
    name,
    'data-dir': dataDir,
    'listen-client-urls': `http://${client}`,
    'advertise-client-urls': `http://${client}`,
    'listen-peer-urls': `http://${peer}`,
    'initial-advertise-peer-urls': `http://${peer}`,
    'initial-cluster': all.map((member) => `${member.name}=http://${member.peer}`).join(','),
    'initial-cluster-token': `bench-${all[0]?.peer}`,
    logger: 'zap',
    'log-outputs': 'stderr',
  };
  return asArguments(flags);
}

/** The body of a successful answer. */
async function get(address: string, path: string): Promise<string | undefined> {
  try {
    const response = await fetch(`http://${address}${path}`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    const body = await response.text();
    return response.ok ? body : undefined;
  } catch {
    return undefined;
  }
}
