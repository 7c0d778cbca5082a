/** Copies show what their keys were at their revision (`MirrorCheck`), and follow to the end. */
import { type Finding, MirrorCheck, type MirrorEvent, violation } from '../../checkers/index.ts';
import type { Operation, Round } from './evidence.ts';
import { judgeTimed, notesOf, operationsOf, type Timed } from './timed.ts';

interface Asked extends Operation {
  readonly q: {
    readonly op: 'compare' | 'mark' | 'reach' | 'unmark';
    readonly mirror: string;
    readonly prefix: string;
    readonly revision?: number;
    readonly content?: string;
    readonly asked?: number;
  };
  readonly a: { readonly content?: string; readonly revision?: number; readonly has?: boolean } | undefined;
}

export function judgeMirrors(round: Round): readonly Finding[] {
  const asked = operationsOf<Asked>(round, 'mirrors');
  const ended = notesOf<{ readonly mirror: string; readonly ended: string }>(round, 'mirrors');
  return [
    ...judgeTimed(new MirrorCheck(), asked.flatMap(eventsOf)),
    ...asked.filter(isWithout).map(({ q }) => {
      const detail = `copy ${q.mirror} has reached ${q.asked}, and does not have the key that was written then`;
      return violation('mirror: as stored', detail);
    }),
    ...ended.map(({ n }) => violation('mirror: goes on', `copy ${n.mirror} ended: ${n.ended}`)),
  ];
}

function eventsOf({ q, a, t0, t1 }: Asked): readonly Timed<MirrorEvent>[] {
  const { op, mirror, prefix: span, revision = 0, content = '', asked = 0 } = q;
  switch (op) {
    case 'compare': {
      const shown: Timed<MirrorEvent> = { t: t0, event: { type: 'shows', mirror, span, revision, content } };
      if (a?.content === undefined || t1 === null) return [shown];
      return [shown, { t: t1, event: { type: 'stored', span, revision, content: a.content } }];
    }
    case 'reach':
      if (a?.revision === undefined || t1 === null) return [];
      return [{ t: t1, event: { type: 'reached', mirror, asked, revision: a.revision } }];
    default:
      return [];
  }
}

/** It has reached the revision of the write, and not the write. */
function isWithout({ q, a }: Asked): boolean {
  return q.op === 'reach' && a?.has === false && (a.revision ?? 0) >= (q.asked ?? 0);
}
