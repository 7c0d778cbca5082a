/**
 * Bugs planted for the simulation of etcd watch streams, each in one place. stream-bugs.long.test.ts runs the `seed` of
 * each. One of the bug's `properties` must occur in what the run finds.
 */
import type { PlantedBug } from '../../common/planted/planted-bug.ts';

export const STREAM_BUGS: readonly PlantedBug[] = [
  {
    name: 'progress-without-watches-that-are-being-created',
    rule: 'progress of a stream waits for watches that are still being created (watch-progress.ts P1)',
    file: 'packages/gateway/src/etcd/watch-stream.ts',
    find: 'if (watch.ended === undefined) yield watch;',
    replace: "if (watch.state === 'live') yield watch;",
    seed: 2,
    properties: ['SL1 watch: order', 'SL1 watch: complete'],
  },
  {
    name: 'events-before-created',
    rule: 'a watch over several ranges delivers nothing before it is created (merged-watch.ts MW8)',
    file: 'packages/gateway/src/routing/watches/merged-watch.ts',
    find: '    if (!this.#created) return this.#pauseFullParts(); // MW8\n',
    replace: '',
    seed: 2,
    properties: ['SL1 watch: complete'],
  },
  {
    name: 'progress-amid-catching-up',
    rule: 'a watch answers how far it is when it is caught up (watch-hub.ts W6)',
    file: 'packages/dataserver/src/watch/watch-hub.ts',
    find: 'if (asked === undefined || !this.#canSay(watcher)) return;',
    replace: 'if (asked === undefined || stream.blocked) return;',
    seed: 1,
    properties: ['SL1 watch: order', 'SL1 watch: complete'],
  },
  {
    name: 'watch-from-now-behind-what-its-range-has-closed',
    rule: 'a watch from now on begins behind every revision that was given out before (watch-session.ts WS4)',
    file: 'packages/dataserver/src/watch/watch-session.ts',
    find: 'replica.closing.closeNewest(begin); // WS4',
    replace: 'begin(undefined);',
    seed: 5,
    properties: ['SL1 watch stream: progress'],
  },
];
