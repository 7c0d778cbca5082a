import { AsyncLocalStorage } from 'node:async_hooks';
import { Inject } from '@nestjs/common';
import type { AcquireOptions, HeldLock } from 'remora';
import { Locks } from './remora.module.ts';

const held = new AsyncLocalStorage<HeldLock>();
const LOCKS = Symbol('locks');

/** The properties that a name asks for: `'id' | 'line'` for `orders/:id/:line`. */
type Properties<Name extends string> = Name extends `${infer Part}/${infer Rest}`
  ? Properties<Part> | Properties<Rest>
  : Name extends `:${infer Property}`
    ? Property
    : never;

/** What a method takes whose lock has this name: first of all, something with these properties. */
type Arguments<Name extends string> = [Properties<Name>] extends [never]
  ? unknown[]
  : [Readonly<Record<Properties<Name>, string | number>>, ...unknown[]];

/**
 * Runs a method under a lock. `:id` in the lock's name stands for the property `id` of the method's first argument. The
 * compiler checks that there is one.
 *
 * The method gets the lock by `heldLock()`. Write this decorator last, next to the method, so that others, such as
 * `@Cron()`, see the method with its lock.
 */
export function WithLock<const Name extends string>(name: Name, options: AcquireOptions = {}) {
  return <Args extends Arguments<Name>, Result>(
    prototype: object,
    key: string | symbol,
    descriptor: TypedPropertyDescriptor<(...args: Args) => Promise<Result>>,
  ): void => {
    const method = descriptor.value;
    if (method === undefined) throw new TypeError(`@WithLock('${name}') is for methods; ${String(key)} is none`);
    Inject(Locks)(prototype, LOCKS);
    descriptor.value = async function (this: { readonly [LOCKS]: Locks }, ...args) {
      const work = (lock: HeldLock) => held.run(lock, () => method.apply(this, args));
      return this[LOCKS].run(nameOf(name, args[0]), options, work);
    };
  };
}

/** The lock of the method that runs: pass its `version` to every write, and its `signal` to all that can be stopped. */
export function heldLock(): HeldLock {
  const lock = held.getStore();
  if (lock === undefined) throw new Error('heldLock() was called outside of a method with @WithLock');
  return lock;
}

function nameOf(name: string, input: unknown): string {
  const parts = name.split('/').map((part) => {
    if (!part.startsWith(':')) return part;
    const value = (input as Readonly<Record<string, unknown>> | null | undefined)?.[part.slice(1)];
    if (typeof value === 'number' || (typeof value === 'string' && value !== '')) return value;
    throw new TypeError(`@WithLock('${name}'): ${part} has to be a number or text that is not empty, got ${value}`);
  });
  return parts.join('/');
}
