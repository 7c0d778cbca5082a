/** Programs that use the SDK from its tarball. */

/** Takes a lock, writes a key and looks at the nodes. */
const USE = `
(async () => {
  const endpoints = process.argv[2].split(',');
  const remora = await connect({ endpoints, renewInWorker: true });
  const version = await remora.lock('sdk').run({ wait: '20s' }, async ({ version }) => {
    await remora.kv.put('from-sdk', String(version));
    return version;
  });
  const { value } = await remora.kv.get('from-sdk');
  const admin = new AdminClient({ endpoints });
  const { nodes } = await admin.nodes();
  const error = await admin.range(999_999).catch((error) => error);
  await remora.close();
  console.log(String(value) === String(version), nodes.length, error instanceof RemoraError, error.code);
})();
`;

export const PROGRAMS = {
  'import.mjs': `import { connect, RemoraError } from 'remora';
import { AdminClient } from 'remora/admin';${USE}`,
  'require.cjs': `const { connect, RemoraError } = require('remora');
const { AdminClient } = require('remora/admin');${USE}`,
};

/** What both programs print. */
export const PRINTED = 'true 3 true RANGE_NOT_FOUND\n';

const TYPED = `
export async function use(remora: RemoraClient, admin: AdminClient): Promise<number> {
  const held: HeldLock = await remora.lock('l').acquire({ wait: '5s' });
  const { nodes } = await admin.nodes();
  return held.version + nodes.length;
}
export const open: (options: ConnectOptions) => Promise<RemoraClient> = connect;
`;

export const TYPED_PROGRAM = `import { type ConnectOptions, connect, type HeldLock, type RemoraClient } from 'remora';
import type { AdminClient } from 'remora/admin';${TYPED}`;
