import { ServiceError } from '@remora/base';

/** Hashes and snapshots at a time. Each reads all keys, which costs the leaders of all ranges. */
export const KEY_SCANS_MAX = 4;

/** Bounds the calls of a gateway that read all keys; further ones are refused. */
export class KeyScans {
  #running = 0;

  /** Returns the function to call when the reading has ended. @throws {ServiceError} RESOURCE_EXHAUSTED */
  enter(): () => void {
    if (this.#running >= KEY_SCANS_MAX) {
      const message = `this node already answers ${KEY_SCANS_MAX} calls that read all keys; try again later`;
      throw new ServiceError('RESOURCE_EXHAUSTED', message);
    }
    this.#running++;
    let left = false;
    return () => {
      if (!left) this.#running--;
      left = true;
    };
  }
}
