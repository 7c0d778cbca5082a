/** The files of `deploy/`: against the schemas of what reads them, and against the options of a node. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { envName, parseOptions } from '@remora/base';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { nodeSchema } from '../../packages/cli/src/node-options.ts';

const DEPLOY = fileURLToPath(new URL('../../deploy/', import.meta.url));
/** What commands read that run in a container, besides the options of a node. */
const OF_COMMANDS = ['REMORA_ENDPOINTS', 'REMORA_CACERT', 'REMORA_CERT', 'REMORA_KEY'];

const read = (file: string): string => readFileSync(DEPLOY + file, 'utf8');

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly spec: Record<string, unknown>;
}

type Environment = Readonly<Record<string, string>>;

const manifests: readonly Manifest[] = parseAllDocuments(read('kubernetes/remora.yaml')).map((one) => one.toJS());
const { services } = parse(read('docker/compose.yaml'), { merge: true });

/** The variables of a pod; `$(NAME)` refers to another one. */
function ofPod({ spec }: Manifest): Environment {
  const { template } = spec as { template: { spec: { containers: { env: { name: string; value?: string }[] }[] } } };
  const variables = template.spec.containers.flatMap(({ env }) => env);
  return Object.fromEntries(
    variables.map(({ name, value = 'remora-0' }) => [name, value.replaceAll('$(REMORA_NAME)', 'remora-0')]),
  );
}

test.each(manifests)('$kind is valid by the schema of Kubernetes', (manifest) => {
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
    const all = { REMORA_DATA_DIR: '/data/node', REMORA_LISTEN_HOST: '0.0.0.0', ...env };
    expect(() => parseOptions(nodeSchema, { env: all })).not.toThrow();
  });
});
