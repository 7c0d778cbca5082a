// Holds a lock until it is killed: `node lock-holder.mjs <endpoints> <name> <session ttl in ms>`. Prints its version.
import { connect } from 'remora';

const [endpoints = '', name = '', ttl = '10000'] = process.argv.slice(2);
const client = await connect({ endpoints, sessionTtl: Number(ttl) });
const held = await client.lock(name).acquire();
process.stdout.write(`${held.version}\n`);
setInterval(() => {}, 1_000);
