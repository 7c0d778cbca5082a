import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { assert } from '@remora/base';
import { beforeAll, describe, expect, it } from 'vitest';
import { holdSignalsBySources } from './abort-signals.ts';

describe('signals held by what they depend on', () => {
  beforeAll(holdSignalsBySources);

  it('are aborted by the first source, for its reason', () => {
    const [a, b] = [new AbortController(), new AbortController()];
    const any = AbortSignal.any([a.signal, b.signal]);
    expect(any.aborted).toBe(false);
    b.abort('b');
    a.abort('a');
    expect(any.reason).toBe('b');
  });

  it('are aborted from the beginning where a source was', () => {
    const any = AbortSignal.any([new AbortController().signal, AbortSignal.abort('gone')]);
    expect(any.reason).toBe('gone');
  });

  it('go with their sources, although somebody listens', async () => {
    setFlagsFromString('--expose-gc');
    const collect: unknown = runInNewContext('gc');
    assert(typeof collect === 'function', 'V8 shows its collector');
    const heard = listened();
    await new Promise((resolve) => setImmediate(resolve)); // what was made in a turn is kept until its end
    collect();
    expect(heard.deref()).toBeUndefined();
  });
});

/** What listens to a signal whose sources nobody has. */
function listened(): WeakRef<object> {
  const world = { aborted: false };
  AbortSignal.any([new AbortController().signal]).addEventListener('abort', () => {
    world.aborted = true;
  });
  return new WeakRef(world);
}
