// A process that takes a lock and does with it what its parent says.
import { connect } from 'remora';

let client;
let lock;

const calls = {
  async connect() {
    client = await connect(JSON.parse(process.argv[2]));
  },
  async acquire(name) {
    lock = await client.lock(name).acquire();
    // A holder that works looks at its signal.
    lock.signal.throwIfAborted();
    return lock.version;
  },
  isLost: () => lock.signal.aborted,
  release: () => lock.release(),
};

process.on('message', async ({ call, what, args }) => {
  try {
    process.send({ call, result: await calls[what](...args) });
  } catch (error) {
    process.send({ call, error: String(error) });
  }
});
process.on('disconnect', () => process.exit());
