import { JSON_LINES } from '../openapi/parts.ts';
import { bytesParam, type HttpCall, type Route, type RouteDeps, reading, slotOf, untilClosed } from '../route.ts';
import { onlyThese } from '../targets.ts';
import { kvEvents, readKvWatch } from './kv-events.ts';
import { kvExport } from './kv-export.ts';
import { kvImport } from './kv-import.ts';
import { kvTree } from './kv-tree.ts';

const KEY = '/v1/kv/{key}';

export const KV_ROUTES: readonly Route[] = [
  reading(KEY, ({ kv }, call) => kv.reads.get(keyOf(call), call.target)),
  reading('/v1/kv', ({ kv }, call) => kv.reads.list(call.target, call.signal)),
  reading('/v1/kv-tree', ({ kv }, call) => kvTree(kv.calls, call.target, call.signal)),
  reading('/v1/kv-history/{key}', ({ kv }, call) => kv.reads.history(keyOf(call), call.target)),
  writing('PUT', KEY, ({ kv }, call) => {
    onlyThese(call.target.query, []);
    return kv.writes.put(keyOf(call), call.fields);
  }),
  writing('DELETE', KEY, ({ kv }, call) => {
    call.fields.end();
    return kv.writes.delete(keyOf(call), call.target);
  }),
  writing('DELETE', '/v1/kv', ({ kv }, call) => {
    call.fields.end();
    return kv.writes.deletePrefix(call.target);
  }),
  {
    ...{ method: 'GET', path: '/v1/kv-events' },
    async handle(deps, call) {
      call.fields.end();
      const terms = readKvWatch(call.target, call.lastEventId);
      const giveSlot = slotOf(deps);
      try {
        const { events, cancel } = await kvEvents(deps, terms, call, call.signal);
        const undelivered = (): void => {
          cancel();
          giveSlot();
        };
        return { status: 200, body: undefined, events: untilClosed(events, giveSlot), undelivered };
      } catch (error) {
        giveSlot();
        throw error;
      }
    },
  },
  {
    ...{ method: 'GET', path: '/v1/kv-export' },
    async handle(deps, call) {
      call.fields.end();
      const lines = kvExport(deps.kv.calls, call.target);
      const giveSlot = slotOf(deps);
      const headers = { 'content-type': JSON_LINES };
      return { status: 200, headers, body: undefined, lines: untilClosed(lines, giveSlot), undelivered: giveSlot };
    },
  },
  {
    ...{ method: 'POST', path: '/v1/kv-import', takesLines: true },
    async handle({ backend, clock, kv }, { principal, trace, target, lines, signal }) {
      const { calls, limits } = kv;
      const asked = { principal, trace };
      return { status: 200, body: await kvImport({ backend, clock, calls, limits, asked }, target, lines, signal) };
    },
  },
];

function writing(
  method: 'PUT' | 'DELETE',
  path: string,
  handle: (deps: RouteDeps, call: HttpCall) => Promise<unknown>,
): Route {
  return { method, path, handle: async (deps, call) => ({ status: 200, body: await handle(deps, call) }) };
}

function keyOf(call: HttpCall) {
  return bytesParam(call, 'key');
}
