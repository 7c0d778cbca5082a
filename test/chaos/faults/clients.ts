/** Clients that vanish or stand still, and actions of operators while others work. */
import { drawMs, type Fault } from './fault.ts';

const PAUSE_MS_MIN = 200;
/** Longer than the sessions of clients. */
const PAUSE_MS_MAX = 8_000;
const BACK_MAX = 600;

const killed: Fault = {
  kind: 'client killed',
  category: 'client',
  async befall({ clients, pause }, random) {
    const name = await clients.kill(random.int(clients.size));
    await pause(drawMs(random, 0, 2_000));
    await clients.replaceGone();
    return `${name} killed, and another one took its place`;
  },
};

const paused: Fault = {
  kind: 'client paused',
  category: 'client',
  async befall({ clients, pause }, random) {
    const ms = drawMs(random, PAUSE_MS_MIN, PAUSE_MS_MAX);
    const { name, goOn } = clients.pause(random.int(clients.size));
    await pause(ms);
    goOn();
    return `${name} stood still for ${ms} ms`;
  },
};

const compaction: Fault = {
  kind: 'compaction',
  category: 'client',
  async befall({ clients }, random) {
    const back = random.int(BACK_MAX);
    clients.compact(back);
    return `all but the last ${back} revisions`;
  },
};

const lockBroken: Fault = {
  kind: 'lock broken',
  category: 'client',
  async befall({ clients }, random) {
    const lock = await clients.breakLock(random);
    return lock === undefined ? 'no lock was held' : `${lock} taken from whoever held it`;
  },
};

export const CLIENT_FAULTS: readonly Fault[] = [killed, paused, compaction, lockBroken];
