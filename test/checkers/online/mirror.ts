/**
 * Checks whether local copies of keys are what they claim to be. The keys of a `span` at one revision have one content,
 * wherever it is read.
 *
 * Promises:
 * MC1. A copy shows what the keys were at its revision: the content that a read of that revision returns, and that
 *      other copies of these keys show at that revision.
 * MC2. The revision of a copy never goes back.
 * MC3. A copy that has `reached` a revision shows that revision, or a later one.
 */
import { type Check, type Finding, NOTHING, violation } from '../check.ts';

export type MirrorEvent =
  /** `content`: the keys and their revisions; absent if only the revision was looked at. */
  | {
      readonly type: 'shows';
      readonly mirror: string;
      readonly span: string;
      readonly revision: number;
      readonly content?: string | undefined;
    }
  /** A read of the past returned this. */
  | { readonly type: 'stored'; readonly span: string; readonly revision: number; readonly content: string }
  /** The copy says that it has `asked`, a revision, and shows `revision`. */
  | { readonly type: 'reached'; readonly mirror: string; readonly asked: number; readonly revision: number };

interface Content {
  readonly content: string;
  /** Where it was seen. */
  readonly by: string;
}

export class MirrorCheck implements Check<MirrorEvent> {
  readonly name = 'mirror';
  /** By copy. */
  readonly #revisions = new Map<string, number>();
  /** By span and revision. */
  readonly #contents = new Map<string, Content>();

  observe(event: MirrorEvent): readonly Finding[] {
    switch (event.type) {
      case 'shows': {
        const { mirror, revision, content } = event;
        const back = this.#moves(mirror, revision);
        return content === undefined ? back : [...back, ...this.#same({ ...event, content }, `copy ${mirror}`)];
      }
      case 'stored':
        return this.#same(event, 'a read');
      case 'reached': {
        const { mirror, asked, revision } = event;
        const back = this.#moves(mirror, revision);
        if (revision >= asked) return back;
        return [
          ...back,
          violation('mirror: reached', `copy ${mirror} is at ${revision}, and ${asked} was to be reached`),
        ]; // MC3
      }
    }
  }

  finish(): readonly Finding[] {
    return NOTHING;
  }

  /** MC2. */
  #moves(mirror: string, revision: number): readonly Finding[] {
    const before = this.#revisions.get(mirror) ?? 0;
    this.#revisions.set(mirror, Math.max(before, revision));
    if (revision >= before) return NOTHING;
    return [violation('mirror: revisions grow', `copy ${mirror} went from ${before} back to ${revision}`)];
  }

  /** MC1. */
  #same(seen: { span: string; revision: number; content: string }, by: string): readonly Finding[] {
    const { span, revision, content } = seen;
    const place = `${revision} ${span}`;
    const known = this.#contents.get(place);
    if (known === undefined) this.#contents.set(place, { content, by });
    if (known === undefined || known.content === content) return NOTHING;
    const detail = `${by} shows of ${span} at ${revision}\n${content}\nand ${known.by} shows\n${known.content}`;
    return [violation('mirror: as stored', detail)];
  }
}
