import { ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { expect, test } from 'vitest';
import { echo } from '../../test/support/rpc-methods.ts';
import { createMemoryLink } from '../testing/memory-link.ts';
import { LinkCaller } from './caller.ts';
import { FINAL_REFUSAL, type GuardedLink } from './link-guard.ts';
import { createRpcRegistry } from './registry.ts';
import { serveLink } from './server.ts';

function bedOf({ admitsAgain = false } = {}) {
  const clock = new ManualClock();
  const registry = createRpcRegistry();
  const heard: string[] = [];
  const refused = new Set<string>();
  registry.handle(echo, (text, _context, done) => {
    heard.push(text);
    if (refused.has(text)) return done(new ServiceError('UNAUTHENTICATED', text), undefined);
    done(undefined, text);
  });
  const pair = createMemoryLink(clock);
  serveLink({ link: pair.server, registry, clock, caller: { kind: 'node', nodeId: 1 } });
  const seen: string[] = [];
  let link: GuardedLink | undefined;
  const caller = new LinkCaller({
    link: pair.client,
    clock,
    guard: (guarded) => {
      link = guarded;
      return {
        opened: () => void seen.push('opened'),
        refused: () => {
          seen.push('refused');
          if (admitsAgain) guarded.admit();
        },
        closed: () => void seen.push('closed'),
      };
    },
    onAdmitted: () => void seen.push('admitted'),
  });
  const ends: string[] = [];
  const call = (text: string, by: Pick<LinkCaller, 'call'> | GuardedLink = caller): void => {
    by.call(echo, text, { timeoutMs: 1_000 }, (error, reply) => ends.push(error?.code ?? reply ?? ''));
  };
  const guarded = (): GuardedLink => {
    if (link === undefined) throw new Error('there is no link');
    return link;
  };
  return { clock, heard, refused, seen, ends, call, guarded };
}

test('only calls of the guard leave before it admits the link, and the others then leave in order (LG1)', () => {
  const { clock, heard, seen, ends, call, guarded } = bedOf();
  call('one');
  call('two');
  clock.advance(10);
  expect([seen, heard]).toEqual([['opened'], []]);
  call('log-in', guarded());
  clock.advance(10);
  expect([heard, ends]).toEqual([['log-in'], ['log-in']]);
  call('three');
  guarded().admit();
  clock.advance(10);
  expect(heard).toEqual(['log-in', 'one', 'two', 'three']);
  expect(seen).toEqual(['opened', 'admitted']);
});

test('a refusal holds the link again, but not one of a call that left before it was last held (LG2)', () => {
  const { clock, heard, refused, seen, ends, call, guarded } = bedOf();
  clock.advance(10);
  guarded().admit();
  refused.add('old');
  refused.add('late');
  call('old');
  call('late');
  clock.advance(10);
  expect(ends).toEqual(['UNAUTHENTICATED', 'UNAUTHENTICATED']);
  expect(seen).toEqual(['opened', 'admitted', 'refused']);
  call('new');
  clock.advance(10);
  expect(heard).toEqual(['old', 'late']);
  guarded().admit();
  clock.advance(10);
  expect(heard).toEqual(['old', 'late', 'new']);
  refused.add('log-in');
  call('log-in', guarded());
  clock.advance(10);
  expect(seen).toEqual(['opened', 'admitted', 'refused']);
});

test('a late refusal does not count when the link is admitted again by then (LG2)', () => {
  const { clock, refused, seen, call, guarded } = bedOf({ admitsAgain: true });
  clock.advance(10);
  guarded().admit();
  for (const text of ['old', 'late']) {
    refused.add(text);
    call(text);
  }
  clock.advance(10);
  expect(seen).toEqual(['opened', 'admitted', 'refused']);
});

test.each([
  { final: true, code: 'UNAUTHENTICATED' },
  { final: false, code: 'UNAVAILABLE' },
])('calls that wait when the guard refuses the link end as $code; final: $final (LG3)', ({ final, code }) => {
  const { clock, seen, ends, call, guarded } = bedOf();
  call('one');
  clock.advance(10);
  guarded().refuse(
    new ServiceError('UNAUTHENTICATED', 'wrong password', final ? { details: { [FINAL_REFUSAL]: true } } : {}),
  );
  clock.advance(10);
  expect(ends).toEqual([code]);
  expect(seen).toEqual(['opened', 'closed']);
});
