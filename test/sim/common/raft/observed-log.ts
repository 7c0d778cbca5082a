/** A node's log that first shows the checks everything that is appended to it. */
import type { GroupAppend, GroupLog } from '@remora/raft';

export function observedLog(inner: GroupLog, appended: (batch: readonly GroupAppend[]) => void): GroupLog {
  return new Proxy(inner, {
    get(target, name) {
      if (name === 'append') {
        const append: GroupLog['append'] = (batch, done) => {
          appended(batch);
          target.append(batch, done);
        };
        return append;
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
