// What tests of logs share.
import type { Entry } from '../../src/core/types.ts';
import type { GroupId, GroupLog, RecoveredGroup } from '../../src/multi/ports.ts';

/** What a log gave back when it was opened, with all entries. */
export type FoundLog = ReadonlyMap<GroupId, RecoveredGroup>;

/** Everything that a log holds: what it handed out, and the rest read back. */
export async function readAll(log: GroupLog): Promise<FoundLog> {
  const found = new Map<GroupId, RecoveredGroup>();
  for (const [groupId, group] of log.recovered()) {
    const entries: Entry[] = [];
    const to = group.outline.lastIndex - group.entries.length;
    for (let from = group.start.index + 1; from <= to; from += entries.length - (from - group.start.index - 1)) {
      const read = await log.read({ groupId, from, to, maxBytes: 3000 });
      if (read.length === 0) throw new Error(`group ${groupId}: nothing at ${from}, the log goes to ${to}`);
      entries.push(...read);
    }
    found.set(groupId, { ...group, entries: [...entries, ...group.entries] });
  }
  return found;
}
