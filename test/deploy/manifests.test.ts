/** The files of `deploy/`: against the schemas of what reads them, and against the options of a node. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { envName, parseOptions } from '@remora/base';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { nodeSchema } from '../../packages/cli/src/node-options.ts';
import { runHere } from '../e2e/command-line.ts';

const DEPLOY = fileURLToPath(new URL('../../deploy/', import.meta.url));
/** What commands read that run in a container, besides the options of a node. */
const OF_COMMANDS = ['REMORA_ENDPOINTS', 'REMORA_CACERT', 'REMORA_CERT', 'REMORA_KEY'];

/** What the image sets: deploy/docker/Dockerfile. */
const ALL_ADDRESSES = ['CLIENT', 'PEER', 'HTTP'].map((one, i) => [`REMORA_${one}_LISTEN`, `0.0.0.0:${7480 + i}`]);
const IMAGE: Environment = { REMORA_DATA_DIR: '/data/node', ...Object.fromEntries(ALL_ADDRESSES) };

const read = (file: string): string => readFileSync(DEPLOY + file, 'utf8');

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly spec: Record<string, unknown>;
}

type Environment = Readonly<Record<string, string>>;

const manifestsOf = (file: string): readonly Manifest[] => parseAllDocuments(read(file)).map((one) => one.toJS());
const manifests = manifestsOf('kubernetes/remora.yaml');
const backup = manifestsOf('kubernetes/backup.yaml');
const { services } = parse(read('docker/compose.yaml'), { merge: true });

/** The variables of a pod; `$(NAME)` refers to another one. */
function ofPod({ spec }: Manifest): Environment {
  const { template } = spec as { template: { spec: { containers: { env: { name: string; value?: string }[] }[] } } };
  const variables = template.spec.containers.flatMap(({ env }) => env);
  return Object.fromEntries(
    variables.map(({ name, value = 'remora-0' }) => [name, value.replaceAll('$(REMORA_NAME)', 'remora-0')]),
  );
}

test.each([...manifests, ...backup])('$kind is valid by the schema of Kubernetes', (manifest) => {
  const require = createRequire(import.meta.url);
  const [group, version] = manifest.apiVersion.includes('/')
    ? manifest.apiVersion.split('/')
    : ['', manifest.apiVersion];
  const models = require(`kubernetes-models/${group === '' ? '' : `${group}/`}${version}/${manifest.kind}`);
  const model = new models[manifest.kind](manifest);
  expect(() => model.validate()).not.toThrow();
});

describe('a node takes the variables of', () => {
  const stateful = manifests.find(({ kind }) => kind === 'StatefulSet');
  const nodes = Object.entries<{ environment?: Environment }>(services).filter(([name]) => /^n\d$/.test(name));
  const cases = [
    ...(stateful === undefined ? [] : [{ name: 'the StatefulSet', env: ofPod(stateful) }]),
    ...nodes.map(([name, { environment = {} }]) => ({ name: `${name} of compose.yaml`, env: environment })),
  ];

  test('a StatefulSet and three services', () => expect(cases).toHaveLength(4));

  test.each(cases)('$name', ({ env }) => {
    const options = Object.keys(nodeSchema.definitions).map((name) => envName('REMORA', name));
    expect(Object.keys(env).filter((name) => ![...options, ...OF_COMMANDS].includes(name))).toEqual([]);
    const all = { ...IMAGE, ...env };
    expect(() => parseOptions(nodeSchema, { env: all })).not.toThrow();
  });
});

describe('a backup is taken by', () => {
  interface Job {
    readonly jobTemplate: { readonly spec: { readonly template: Manifest } };
  }
  interface Container {
    readonly args: readonly string[];
    readonly env: readonly { readonly name: string }[];
    readonly volumeMounts: readonly { readonly mountPath: string }[];
  }
  const [, job] = backup as readonly [Manifest, Manifest & { readonly spec: Job }];
  const { template } = job.spec.jobTemplate.spec;
  const [container] = (template.spec as { readonly containers: readonly [Container] }).containers;
  const service = read('systemd/remora-backup.service');
  const [, , ...ofService] = /^ExecStart=(.*)$/m.exec(service)?.[1]?.split(' ') ?? [];
  const rows = [
    { name: 'the CronJob', args: container.args, dir: '/backups' },
    { name: 'the service of systemd', args: ['admin', ...ofService], dir: '/var/lib/remora-backups' },
  ];

  test.each(rows)('$name, whose command line is valid', async ({ args, dir }) => {
    const own = mkdtempSync(join(tmpdir(), 'remora-deploy-'));
    try {
      expect(args).toContain(dir);
      const placed = args.map((arg) => (arg === dir ? own : arg));
      const { code, err } = await runHere(['127.0.0.1:1'], placed);
      // It gets as far as looking for the cluster.
      expect([code, err]).toEqual([69, expect.stringContaining('no node answers')]);
    } finally {
      rmSync(own, { recursive: true });
    }
  });

  test('the CronJob, in a directory that is mounted, with variables that commands read', () => {
    expect(container.volumeMounts.map(({ mountPath }) => mountPath)).toContain('/backups');
    expect(container.env.map(({ name }) => name).filter((name) => !OF_COMMANDS.includes(name))).toEqual([]);
    // The network policy of the nodes lets it in.
    const { labels } = (template as unknown as { readonly metadata: { readonly labels: object } }).metadata;
    expect(labels).toMatchObject({ 'remora-client': 'true' });
  });

  test('the service of systemd, in its state directory, and its timer', () => {
    expect(service).toContain('StateDirectory=remora-backups');
    expect(read('systemd/remora-backup.timer')).toMatch(/^OnCalendar=\*-\*-\* \d\d:\d\d:00$/m);
    expect(readFileSync(`${DEPLOY}../scripts/release/debian-package.mjs`, 'utf8')).toContain("'remora-backup.timer'");
  });
});
