/**
 * Sequences of faults that only a lease is sensitive to. Each makes a rival leader possible as early as the rules
 * allow, while the old leader hears nothing of it (core/lease.ts, by its rules).
 */

import type { Fault } from '../../common/faults/fault.ts';
import type { World } from '../world.ts';
import { around, course, from, on, to } from './course.ts';

/** The nodes that are not the leader, in a random order. */
function others(world: World, leader: number, drawn: number): readonly [number, number] {
  const ids = world.nodes.map((node) => node.id).filter((id) => id !== leader);
  const at = drawn % ids.length;
  return [ids[at] ?? leader, ids[(at + 1) % ids.length] ?? leader];
}

/** The leader's outgoing messages are lost, but everything arrives at it, until another node leads. */
const muted = course('lease: leader muted', (going, world, leader, { b }) => {
  going.after(b % Math.floor(world.options.electionMs / 4), () => going.block(from(leader)));
});

/** E1. Old answers arrive while all outgoing messages are lost. */
const late = course('lease: late answers', (going, world, leader, { b, c }) => {
  const { electionMs } = world.options;
  going.delay(to(leader), Math.floor(electionMs / 8) + (b % electionMs));
  going.after(c % Math.floor((electionMs * 3) / 4), () => going.block(from(leader)));
});

/** E2. One follower hears nothing and campaigns. The others are restarted, repeatedly or at the end. */
const forgetful = course('lease: followers started anew', (going, world, leader, { b, c }) => {
  const { electionMs } = world.options;
  const [cut] = others(world, leader, b);
  going.block(on(leader, cut));
  const again = 5 + (c % 40);
  const restart = (): void => {
    for (const { id } of world.nodes) if (id !== leader && id !== cut) going.restart(id, c % 2 === 0, 0);
    if (b % 2 === 0) going.after(again, restart);
    else going.block(from(leader));
  };
  going.after(electionMs / 2 + (c % electionMs), restart);
});

/**
 * E3. Followers stand still right after the last heartbeat that they hear, and then run all their missed ticks at once.
 */
const catchingUp = course('lease: followers catch up', (going, world, leader, { b, c }) => {
  for (const node of world.nodes) if (node.id !== leader) going.stand(node.id, 'pause', 10 + (b % 30));
  going.after(c % 20, () => going.block(from(leader)));
});

/** E8. The leader's connections are rejected, so it looks like a process that has ended. */
const rejected = course('lease: leader rejected', (going, world, leader, { b }) => {
  going.after(b % Math.floor(world.options.electionMs / 4), () => going.refuse(around(leader)));
});

/** E5. Leadership is transferred, and the old leader hears nothing of the new one. */
const handedOver = course('lease: handed over in silence', (going, world, leader, { a, b, c }) => {
  const [target] = others(world, leader, b);
  going.transfer(world.groupAt(a), leader, target);
  if (c % 4 === 0) going.block(on(target, leader));
  else going.after(c % 8, () => going.block(to(leader)));
});

/** E5. The request to campaign arrives after the transfer was given up. */
const handedLate = course('lease: handed over late', (going, world, leader, { a, b, c }) => {
  const { electionMs } = world.options;
  const [target] = others(world, leader, b);
  going.delay(on(leader, target), electionMs + (c % Math.floor(electionMs / 2)));
  going.block(on(target, leader));
  going.transfer(world.groupAt(a), leader, target);
});

/** E6. The leader's machine is suspended for about as long as a lease, and the others elect a leader. */
const suspended = course('lease: leader suspended', (going, world, leader, { b, c }) => {
  const { electionMs } = world.options;
  going.block(from(leader));
  const ms = Math.floor(electionMs / 2) + (c % (2 * electionMs));
  going.after(b % 20, () => going.stand(leader, world.suspends(leader) ? 'suspend' : 'pause', ms));
});

/**
 * A rival is elected without the leader's knowledge. Then the leader reaches a follower of the rival, whose answers
 * refuse its heartbeats (heartbeats.ts M2, M4).
 */
const refused = course('lease: heartbeats refused', (going, world, leader, { b, c }) => {
  const { electionMs } = world.options;
  const [rival] = others(world, leader, b);
  going.block(on(leader, rival));
  going.block(on(rival, leader));
  const mend = going.block(from(leader));
  going.after(electionMs + (c % Math.floor(electionMs / 2)), mend);
});

export const LEASE_FAULTS: readonly Fault<World>[] = [
  muted,
  late,
  forgetful,
  catchingUp,
  handedOver,
  handedLate,
  suspended,
  refused,
  rejected,
];
