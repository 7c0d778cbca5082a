import type { Engine, Row, Span } from '@remora/base';
import type { SnapshotMeta, StateMachineSnapshot } from '@remora/raft';
import { rangeSpans } from '../state/bounds.ts';
import { encodeSnapshot } from './snapshot-stream.ts';

/**
 * A replica's data on its way out.
 *
 * The picture is one engine view, taken in the same step as the applied position that it stands for (`meta`). It is
 * read as fast as the receiver takes it, a bounded batch at a time; the view is let go by `release`, and a read under
 * way ends with it. `bytes` is about how many there are, for showing progress.
 */
export function takeSnapshot(
  engine: Engine,
  range: { readonly rangeId: number; readonly span: Span; readonly meta: SnapshotMeta; readonly bytes: number },
): StateMachineSnapshot {
  const { rangeId, span, meta, bytes } = range;
  const view = engine.view();
  async function* rows(): AsyncGenerator<readonly Row[]> {
    for (const part of rangeSpans(rangeId, span)) yield* view.scan(part);
  }
  const applied = { index: meta.index, term: meta.term };
  return { meta, chunks: encodeSnapshot({ rangeId, applied, span }, rows()), bytes, release: () => view.release() };
}
