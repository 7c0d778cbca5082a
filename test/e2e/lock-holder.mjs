// Holds a lock until it is killed: `node lock-holder.mjs <endpoints> <name> <session ttl in ms> [journal directory]`.
// Prints the lock's version, and `lost` when it learns of the loss.
import { connect } from 'remora';

const [endpoints = '', name = '', ttl = '10000', journal] = process.argv.slice(2);
const client = await connect({ endpoints, sessionTtl: Number(ttl), journal });
const held = await client.lock(name).acquire();
process.stdout.write(`${held.version}\n`);
held.signal.addEventListener('abort', () => process.stdout.write('lost\n'));
setInterval(() => {}, 1_000);
