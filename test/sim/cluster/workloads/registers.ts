/**
 * A few keys under contention: get, put, delete, compare-and-set. Every value is written once, so a lost, repeated or
 * stale write shows (linearizability, Herlihy & Wing 1990).
 *
 * G1. A command that did not end as UNKNOWN_OUTCOME and failed had no effect: the SDK's rule R2 is put to the test.
 */
import { ServiceError, sleep } from '@remora/base';
import {
  checkLinearizable,
  HistoryRecorder,
  type Request,
  registerModel,
  type Value,
} from '../../../checkers/index.ts';
import { Violation } from '../../common/violation.ts';
import type { ClientLife } from '../sdk-client.ts';
import type { World } from '../world.ts';
import type { MakeWorkload } from './workload.ts';

const KEYS = 4;
/** How the keys begin. */
export const REGISTERS = 'r';

export const registers: MakeWorkload = (world) => {
  const history = new HistoryRecorder(() => world.nowNs());
  return {
    name: 'registers',
    run: async (life) => {
      const { random, clock } = life;
      const seen = new Map<string, Value>();
      for (let n = 0; !world.resting; n++) {
        await sleep(clock, random.int(2 * world.options.thinkMs));
        const key = `${REGISTERS}${random.int(KEYS)}`;
        await one(world, history, life, drawRequest(life, key, `${life.name}:${n}`, seen.get(key) ?? null), seen);
      }
    },
    check: () => {
      const { result, explanation } = checkLinearizable(registerModel, history.records());
      if (result !== 'ok') throw new Violation('linearizable registers', explanation);
    },
  };
};

function drawRequest({ name, random }: ClientLife, k: string, v: string, x: Value): Request {
  const kind = random.int(20);
  if (kind < 8) return { c: name, k, op: 'get' };
  if (kind < 13) return { c: name, k, op: 'put', v };
  if (kind < 15) return { c: name, k, op: 'del' };
  return { c: name, k, op: 'cas', x, v };
}

async function one(
  world: World,
  history: HistoryRecorder,
  life: ClientLife,
  request: Request,
  seen: Map<string, Value>,
): Promise<void> {
  const open = history.begin(request);
  const end = world.operation(life, request.op);
  try {
    const answer = await perform(world, life, request);
    open.done(answer);
    end('done');
    if (request.op === 'get') seen.set(request.k, answer.out ?? null);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    if (error.code === 'UNKNOWN_OUTCOME') open.unknown();
    else open.drop(); // G1
    end(error.code === 'UNKNOWN_OUTCOME' ? 'unknown' : 'refused', error.code);
  }
}

async function perform(world: World, { remora: { kv } }: ClientLife, { op, k, v, x }: Request) {
  const value = String(v);
  switch (op) {
    case 'get': {
      const found = await kv.get(k);
      return { ok: true, out: found === undefined ? null : found.value.toString() };
    }
    case 'put': {
      const { revision } = await kv.put(k, value);
      world.changed({ revision, key: k, kind: 'put', value });
      return { ok: true };
    }
    case 'del': {
      const { revision, deleted } = await kv.delete(k);
      if (deleted > 0) world.changed({ revision, key: k, kind: 'delete' });
      return { ok: true };
    }
    default: {
      const was =
        x === null || x === undefined
          ? ({ key: k, target: 'version', is: '=', than: 0 } as const)
          : ({ key: k, target: 'value', is: '=', than: String(x) } as const);
      const { succeeded, revision } = await kv.txn({ compare: [was], success: [{ put: k, value }] });
      if (succeeded) world.changed({ revision, key: k, kind: 'put', value });
      return { ok: succeeded };
    }
  }
}
