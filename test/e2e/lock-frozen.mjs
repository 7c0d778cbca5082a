// Holds a lock, in a session of four seconds, with a client that was given one endpoint and renews in a worker: `node
// lock-frozen.mjs <endpoint> <name> [credentials]`. The credentials are JSON; `{ tokens }` stands for a function that
// returns that token. Prints `held`. After a line on standard input its thread is blocked for eight seconds. Then it
// prints the lock's state, and whether the cluster agrees.
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { connect } from 'remora';

const [endpoints = '', name = '', given = '{}'] = process.argv.slice(2);
const { tokens, ...others } = JSON.parse(given);
const credentials = tokens === undefined ? others : { token: async () => tokens };
const client = await connect({ endpoints, sessionTtl: '4s', renewInWorker: true, ...credentials });
const held = await client.lock(name).acquire();
await setTimeout(500); // Time for the worker to start, and for the client to learn of other gateways.
process.stdout.write('held\n');
await once(process.stdin, 'data');
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 8_000);
process.stdout.write(`${held.state} ${held.signal.aborted} ${await held.check()}\n`);
await client.close();
process.exit(0);
