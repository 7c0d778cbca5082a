import { expect, test } from 'vitest';
import { usersText } from './check.ts';

const REST = { severity: 'critical', text: '', scope: '', rangeId: 0, nodeId: 0, advice: '', docs: '' };
const condition = (name: string) => ({ ...REST, name });

test.each([
  { name: 'on', authentication: true, rootUsers: ['root', 'ann'], conditions: [], says: /is on.*: root, ann$/ },
  { name: 'off', authentication: false, rootUsers: [], conditions: [condition('silentNode')], says: /is off$/ },
  {
    name: 'not known before the cluster is founded',
    ...{ authentication: false, rootUsers: [], conditions: [condition('noMasters')], says: /is unknown/ },
  },
  {
    name: 'known to be on while masters are lost',
    ...{ authentication: true, rootUsers: ['root'], conditions: [condition('noMasters')], says: /is on/ },
  },
])('authentication is $name', ({ says, ...report }) => {
  expect(usersText(report)).toMatch(says);
});
