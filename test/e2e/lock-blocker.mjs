// Holds a lock, in a session of one second, while its thread is blocked for three: `node lock-blocker.mjs <endpoints>
// <name> <longest block in ms>`. Then prints the lock's state, and whether the cluster agrees.
import { connect } from 'remora';

const [endpoints = '', name = '', maxMainThreadBlock = '0'] = process.argv.slice(2);
const client = await connect({
  endpoints,
  sessionTtl: '1s',
  renewInWorker: true,
  maxMainThreadBlock: Number(maxMainThreadBlock),
});
const held = await client.lock(name).acquire();
// On a busy machine a thread takes a moment to start.
await new Promise((resolve) => setTimeout(resolve, 700));
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3_000);
process.stdout.write(`${held.state} ${held.signal.aborted} ${await held.check()}\n`);
await client.close();
