/** Cuts chunks that are above the limit; smaller ones pass as they are, empty ones are left out. */
export async function* splitChunks(chunks: AsyncIterable<Uint8Array>, bytesMax: number): AsyncIterable<Uint8Array> {
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += bytesMax) yield chunk.subarray(at, at + bytesMax);
  }
}
