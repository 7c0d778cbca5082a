/** Programs and tests that use `remora-server/testing` beside the package `remora`, both as they are published. */
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const USE = `
(async () => {
  const cluster = await startTestCluster();
  const remora = await cluster.connect();
  const held = await remora.lock('l').acquire();
  await cluster.expire(held);
  await cluster.advance('5s');
  const refused = await cluster.advance('soon').catch((error) => error);
  const unreached = await (async () => {
    cluster.cutOff(remora);
    const asked = remora.kv.get('k', { timeout: '1s' }).catch((error) => error);
    await cluster.advance('2s');
    return asked;
  })();
  console.log(remora instanceof RemoraClient, held.state, [refused, unreached].every((e) => e instanceof RemoraError));
  await cluster.stop();
})();
`;

/** They end by themselves. */
export const TESTING_PROGRAMS = {
  'testing.mjs': `import { RemoraClient, RemoraError } from 'remora';
import { startTestCluster } from 'remora-server/testing';${USE}`,
  'testing.cjs': `const { RemoraClient, RemoraError } = require('remora');
const { startTestCluster } = require('remora-server/testing');${USE}`,
};

export const TESTING_PRINTED = 'true lost true\n';

/** The globals of Jest, or the import of the same names. */
const RUNNERS = {
  'node:test': `import { after as afterAll, before as beforeAll, test } from 'node:test';`,
  jest: '/* global afterAll, beforeAll, test */',
};
const SUITE = fileURLToPath(new URL('../../test-node/lock-suite.ts', import.meta.url));

/** The fifty lock tests as one file for a runner. */
export async function lockTests(runner: keyof typeof RUNNERS, format: 'esm' | 'cjs'): Promise<string> {
  const contents = `${RUNNERS[runner]}
import { startTestCluster } from 'remora-server/testing';
import { lockSuite } from ${JSON.stringify(SUITE)};
lockSuite({ test, beforeAll, afterAll, startTestCluster });`;
  const { outputFiles } = await build({
    ...{ bundle: true, write: false, platform: 'node', format, external: ['remora', 'remora-server'] },
    ...{ stdin: { contents, resolveDir: fileURLToPath(new URL('.', import.meta.url)) }, logLevel: 'error' },
  });
  return outputFiles[0]?.text ?? '';
}

/** Compiles against the types of both packages. */
export const TESTING_TYPED = `
export async function use(): Promise<number> {
  const cluster: TestCluster = await startTestCluster({ clock: 'manual', seed: 7 });
  const remora: RemoraClient = await cluster.connect({ sessionTtl: '5s' });
  const held = await remora.lock('l').acquire();
  await cluster.expire(held);
  await cluster.expire(await remora.session());
  await cluster.expire(await remora.election('e').campaign());
  // @ts-expect-error: no such option
  await startTestCluster({ nodes: 3 });
  cluster.cutOff(remora);
  return cluster.clock.monotonicMs();
}
`;
