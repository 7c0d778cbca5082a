import type { auth } from '@remora/protocol/remora';
import { expect, test } from 'vitest';
import { answerText } from './questions.ts';

const locks = (verb: string, name: string, prefix = false) =>
  ({ $case: 'locks', value: { verb, namespace: 'default', name: Buffer.from(name), prefix } }) as const;
const answer = (more: Partial<auth.ExplainResponse>): auth.ExplainResponse => ({
  ...{ allowed: false, enabled: true, user: 'ann', why: 'the user "ann" may not do it' },
  ...{ through: [], missing: [], sufficientRoles: [] },
  ...more,
});

const rows: readonly {
  readonly name: string;
  readonly answer: auth.ExplainResponse;
  readonly says: readonly string[];
}[] = [
  {
    name: 'which role and permission allow it',
    answer: answer({ allowed: true, through: [{ role: 'shop', permission: locks('acquire', 'orders/', true) }] }),
    says: ['ann may acquire orders/42:', '  the role shop may acquire orders/ --prefix'],
  },
  {
    name: 'that root may do everything, and that authentication is off',
    answer: answer({ allowed: true, enabled: false, through: [{ role: 'root', permission: undefined }] }),
    says: [
      'Authentication is off: everybody may do everything now. With authentication on:',
      'ann may acquire orders/42:',
      '  the role root may do everything',
    ],
  },
  {
    name: 'what to grant to a role of the user, and which role has it',
    answer: answer({
      missing: [{ role: 'shop', permission: locks('steer', "it's") }],
      sufficientRoles: ['ops'],
    }),
    says: [
      'the user "ann" may not do it',
      'To allow it, give the user a role that may do it already:',
      '  remora auth user grant-role ann ops',
      'Or:',
      "  remora auth grant shop steer 'it'\\''s'",
    ],
  },
  {
    name: 'how to make a role for a user who has none',
    answer: answer({ missing: [{ role: '', permission: locks('read', 'a') }] }),
    says: [
      'the user "ann" may not do it',
      'To allow it:',
      '  remora auth role add ROLE',
      '  remora auth grant ROLE read a --lock',
      '  remora auth user grant-role ann ROLE',
    ],
  },
  {
    name: 'who alone may do it',
    answer: answer({ missing: [{ role: 'root', permission: undefined }] }),
    says: ['the user "ann" may not do it', 'To allow it:', '  remora auth user grant-role ann root'],
  },
];
test.each(rows)('an answer says $name', ({ answer: given, says }) => {
  expect(answerText(given, 'acquire orders/42').split('\n')).toEqual(says);
});
