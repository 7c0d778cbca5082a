import type { Engine, Row, Span } from '@remora/base';
import type { SnapshotMeta, StateMachineSnapshot } from '@remora/raft';
import { rangeSpans } from '../state/bounds.ts';
import { encodeSnapshot } from './snapshot-stream.ts';

/**
 * A replica's data as the source of a snapshot.
 *
 * The picture is one engine view, taken in the same step as the applied position that it stands for (`meta`). It is
 * read as fast as the receiver takes it, a bounded batch at a time. `release` frees the view and ends a read in
 * progress. `bytes` is the approximate size, for showing progress.
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
