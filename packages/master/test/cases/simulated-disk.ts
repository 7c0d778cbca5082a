/** The bytes on a node's disk, which gives space back only some time after replicas have left it. */
export class SimulatedDisk {
  readonly #freesAfterMs: number;
  /** Of what has left, and when it is off the disk. */
  #left: readonly { readonly bytes: number; readonly freedAtMs: number }[] = [];
  #heldBytes = 0;

  constructor(freesAfterMs: number) {
    this.#freesAfterMs = freesAfterMs;
  }

  /** What it has when its replicas have so many bytes. */
  usedBytes(heldBytes: number, nowMs: number): number {
    const bytes = this.#heldBytes - heldBytes;
    if (bytes > 0) this.#left = [...this.#left, { bytes, freedAtMs: nowMs + this.#freesAfterMs }];
    this.#heldBytes = heldBytes;
    this.#left = this.#left.filter(({ freedAtMs }) => nowMs < freedAtMs);
    return this.#left.reduce((sum, gone) => sum + gone.bytes, heldBytes);
  }
}
