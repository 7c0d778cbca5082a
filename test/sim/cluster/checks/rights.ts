/**
 * Checks that gateways let users in, and refuse them, as their rights say (decision 91).
 *
 * RC1. A right that was revoked is gone on every live node when the revocation is acknowledged, and on nodes that are
 *      cut off from the masters `boundMs` later: no call that began after that is let in.
 * RC2. Nobody is refused who is allowed: no call of a user who had the right from `boundMs` before it began until it
 *      ended is refused as `PERMISSION_DENIED` or `UNAUTHENTICATED`.
 * RC3. When every node reaches the masters, RC1, RC2 and RC4 hold without `boundMs`.
 * RC4. Watches and waits for locks end with the right. From the end of the bound on, no user without the right sees a
 *      change or is granted a lock, however long ago the request was let in: what comes to it began before that.
 * RC5. When every node reaches the masters, watches and waits end soon after the revocation (lasting-rights.ts).
 *
 * While a change is made, and until the bound after it has passed, either answer is right.
 */
import { Violation } from '../../common/violation.ts';

/** How a gateway took a call; `neither`: it failed for another reason. */
export type Verdict = 'let in' | 'refused' | 'neither';

interface Right {
  /** What the user may do once the changes so far are made. */
  allowed: boolean;
  /** When that is certain; undefined while a change is made. */
  certainFromMs: number | undefined;
  /** The number of changes that have begun. */
  changes: number;
}

export class Rights {
  readonly #nowMs: () => number;
  #boundMs: number;
  readonly #rights = new Map<string, Right>();
  /** Calls that were let in or refused: rightly, while either was right, and in all. */
  rightlyLetIn = 0;
  rightlyRefused = 0;
  either = 0;
  /** Events and locks that came to users. */
  came = 0;

  constructor(nowMs: () => number, boundMs: number) {
    this.#nowMs = nowMs;
    this.#boundMs = boundMs;
  }

  /** RC3. For changes that are acknowledged from now on. */
  allNodesReachMasters(): void {
    this.#boundMs = 0;
  }

  /** Before there are calls, a user is given what it may do. */
  begins(user: string): void {
    this.#rights.set(user, { allowed: true, certainFromMs: this.#nowMs(), changes: 0 });
  }

  /** A right begins to be granted or revoked; the returned function is called when that was acknowledged. */
  changes(user: string, allowed: boolean): () => void {
    const right = this.#of(user);
    const number = ++right.changes;
    right.allowed = allowed;
    right.certainFromMs = undefined;
    return () => {
      if (right.changes === number) right.certainFromMs = this.#nowMs() + this.#boundMs;
    };
  }

  /** A call of a user begins; the returned function takes its end. @throws Violation */
  asked(user: string, what: string): (verdict: Verdict) => void {
    const right = this.#of(user);
    const beganMs = this.#nowMs();
    const { changes, certainFromMs } = right;
    const isCertain = certainFromMs !== undefined && beganMs >= certainFromMs;
    return (verdict) => {
      if (verdict === 'neither') return;
      if (!isCertain || right.changes !== changes) {
        this.either++;
        return;
      }
      const sinceMs = Math.round(beganMs - certainFromMs);
      if (verdict === 'let in' && !right.allowed) {
        const text = `${what} of ${user} was let in; it began ${sinceMs} ms after the bound for its revocation`;
        throw new Violation('what is revoked is refused', text); // RC1
      }
      if (verdict === 'refused' && right.allowed) {
        const text = `${what} of ${user} was refused, who was allowed from ${sinceMs} ms before it began until it ended`;
        throw new Violation('nobody is refused who is allowed', text); // RC2
      }
      if (right.allowed) this.rightlyLetIn++;
      else this.rightlyRefused++;
    };
  }

  /**
   * RC4. An event, or a lock, came to a user who asked for it earlier: the put began, or the lock became free, at
   * `sinceMs`. @throws Violation
   */
  cameTo(user: string, what: string, sinceMs: number): void {
    this.came++;
    const { allowed, certainFromMs } = this.#of(user);
    if (allowed || certainFromMs === undefined || sinceMs < certainFromMs) return;
    const text = `${what} came to ${user}; it began ${Math.round(sinceMs - certainFromMs)} ms after the bound for its revocation`;
    throw new Violation('what is revoked is refused', text);
  }

  #of(user: string): Right {
    const right = this.#rights.get(user);
    if (right === undefined) throw new Error(`nobody has said what ${user} may do`);
    return right;
  }
}
