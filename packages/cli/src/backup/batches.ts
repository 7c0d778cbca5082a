/** The pairs of one transaction: half of what nodes accept by default. */
const BATCH_PAIRS = 64;
const BATCH_BYTES = 512 * 1024;

/** Divides pairs into groups for one transaction each. A pair that is larger than a group has one to itself. */
export async function* batches<Pair extends { readonly key: Uint8Array; readonly value: Uint8Array }>(
  pairs: AsyncIterable<Pair>,
): AsyncGenerator<readonly Pair[]> {
  let batch: Pair[] = [];
  let bytes = 0;
  for await (const pair of pairs) {
    const size = pair.key.length + pair.value.length;
    if (batch.length >= BATCH_PAIRS || (batch.length > 0 && bytes + size > BATCH_BYTES)) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(pair);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}
