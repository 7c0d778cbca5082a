import { type Heat, MEASURES } from '@remora/protocol';

/** What the objects of one minute take besides the contents of their arrays. */
const OBJECT_BYTES = 512;
/** Values as they are in memory. */
const VALUE_BYTES = 8;
const OFFSET_BYTES = 2;

/** The load of a minute, in few objects: all borders are in one piece. */
export class PackedHeat {
  readonly #text: Buffer;
  /** Where each border ends in the text. */
  readonly #ends: Uint16Array;
  readonly #values: Float64Array;

  /** All borders together have less than 64 KiB: `HEAT_COLUMNS_MAX` of them, of `HEAT_BORDER_BYTES_MAX`. */
  constructor({ borders, values }: Heat) {
    this.#ends = new Uint16Array(borders.length);
    let end = 0;
    for (const [i, border] of borders.entries()) {
      end += border.length;
      this.#ends[i] = end;
    }
    this.#text = Buffer.alloc(end); // Not from the pool, which would be kept with it.
    this.#text.write(borders.join(''), 'latin1');
    this.#values = values.slice(0, borders.length * MEASURES);
  }

  /** About how much memory it takes. */
  get bytes(): number {
    return OBJECT_BYTES + this.#text.length + this.#ends.length * (OFFSET_BYTES + MEASURES * VALUE_BYTES);
  }

  get heat(): Heat {
    let start = 0;
    const borders = Array.from(this.#ends, (end) => {
      // A string of its own: a slice of a longer one is compared at a fifth of the speed.
      const border = this.#text.toString('latin1', start, end);
      start = end;
      return border;
    });
    return { borders, values: this.#values };
  }
}
