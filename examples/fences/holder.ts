// A process that takes a lock, reads a number, and writes one less when its parent says so.
import { once } from 'node:events';
import { connect } from 'remora';
import { ENDPOINTS } from '../support/servers.ts';
import { STORES } from './stores.ts';

const [, , kind = '', id = ''] = process.argv;
const store = await STORES[kind]?.();
if (store === undefined) throw new Error(`usage: holder.js ${Object.keys(STORES).join('|')} ID`);

// A short TTL: nobody else gets the lock of a frozen process before that.
const remora = await connect({ endpoints: ENDPOINTS, sessionTtl: '2s' });
const lock = await remora.lock(id).acquire();
const { version } = lock;
const value = await store.read(id, version);
process.send?.({ version, value });

await once(process, 'message');
// Here a program may check its lock (`lock.throwIfLost()`). That does not help if the pause comes after the check.
const write = store.write(id, value - 1, version);
process.send?.({ outcome: await write.then(() => 'written', String) });
process.disconnect();
await Promise.all([remora.close(), store.close()]);
