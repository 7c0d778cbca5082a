/** Randomness, as a port: the simulator seeds it, production uses the system's. */
export interface Random {
  /** A uniform integer in `[0, bound)`; `bound` is a safe integer above 0. */
  int(bound: number): number;
  /** `length` random bytes. */
  bytes(length: number): Buffer;
}

const HEX_DIGITS = Buffer.from('0123456789abcdef');
/** Positions of the two digits of each byte in a GUID; the dashes stay where they are. */
const GUID_PLACES = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34] as const;
const guidText = Buffer.from('00000000-0000-0000-0000-000000000000');

/** A random GUID (version 4) in its usual text form. */
export function randomGuid(random: Random): string {
  const b = random.bytes(16);
  b[6] = ((b[6] ?? 0) & 0x0f) | 0x40;
  b[8] = ((b[8] ?? 0) & 0x3f) | 0x80;
  for (let i = 0; i < GUID_PLACES.length; i++) {
    const [byte, place] = [b[i] ?? 0, GUID_PLACES[i] ?? 0];
    guidText[place] = HEX_DIGITS[byte >> 4] ?? 0;
    guidText[place + 1] = HEX_DIGITS[byte & 0x0f] ?? 0;
  }
  return guidText.toString('latin1');
}

const VERSION_PLACE = 14;
const VERSION_8 = 0x38;
const COUNTER_DIGITS = 12;
const [ZERO, NINE, A, F] = [0x30, 0x39, 0x61, 0x66] as const;

/**
 * GUIDs in series (version 8 of RFC 9562): 74 random bits name the series, a counter of 48 bits its members. They are
 * as unique as random ones and cost a fraction. But from one of them the next can be predicted.
 */
export class GuidSeries {
  readonly #text: Buffer;

  constructor(random: Random) {
    this.#text = Buffer.from(randomGuid(random), 'latin1');
    this.#text[VERSION_PLACE] = VERSION_8;
    this.#text.fill(ZERO, this.#text.length - COUNTER_DIGITS);
  }

  next(): string {
    const text = this.#text;
    // From the last digit on, while there is a carry.
    for (let place = text.length - 1; place >= text.length - COUNTER_DIGITS; place--) {
      const digit = text[place] ?? ZERO;
      text[place] = digit === NINE ? A : digit === F ? ZERO : digit + 1;
      if (digit !== F) break;
    }
    return text.toString('latin1');
  }
}

/** A small, fast, seeded generator (xoshiro128**, Blackman & Vigna 2018) for tests and simulation; not for secrets. */
export class SeededRandom implements Random {
  readonly #s = new Uint32Array(4);

  constructor(seed: number) {
    // splitmix32 spreads a small seed over the whole state, as the authors advise.
    let x = seed >>> 0;
    for (let i = 0; i < 4; i++) {
      x = (x + 0x9e3779b9) >>> 0;
      let z = x;
      z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
      z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
      this.#s[i] = (z ^ (z >>> 16)) >>> 0;
    }
  }

  #next(): number {
    const s = this.#s;
    const s1 = s[1] ?? 0;
    const x = Math.imul(s1, 5);
    const result = Math.imul((x << 7) | (x >>> 25), 9) >>> 0;
    const t = s1 << 9;
    s[2] = (s[2] ?? 0) ^ (s[0] ?? 0);
    s[3] = (s[3] ?? 0) ^ s1;
    s[1] = s1 ^ (s[2] ?? 0);
    s[0] = (s[0] ?? 0) ^ (s[3] ?? 0);
    s[2] = (s[2] ?? 0) ^ t;
    const s3 = s[3] ?? 0;
    s[3] = (s3 << 11) | (s3 >>> 21);
    return result;
  }

  int(bound: number): number {
    const wide = this.#next() * 0x200000 + (this.#next() >>> 11); // 53 bits
    return wide % bound;
  }

  bytes(length: number): Buffer {
    const out = Buffer.allocUnsafe(length);
    for (let i = 0; i < length; i++) out[i] = this.#next() & 0xff;
    return out;
  }
}
