import type { RequestLimits } from '../../request-limits.ts';
import type { RangeCalls } from '../range-calls.ts';
import { KvReads } from './kv-reads.ts';
import { KvWrites } from './kv-writes.ts';

/** The calls about plain keys, in the name of a caller. */
export class KvApi {
  readonly calls: RangeCalls;
  readonly limits: RequestLimits;
  readonly reads: KvReads;
  readonly writes: KvWrites;

  constructor(calls: RangeCalls, limits: RequestLimits) {
    this.calls = calls;
    this.limits = limits;
    this.reads = new KvReads(calls);
    this.writes = new KvWrites(calls, limits);
  }
}
