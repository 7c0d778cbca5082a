import { silentLogger } from '@remora/base';
import { Admission, AdmittedBackend } from '@remora/gateway';
import { expect, test } from 'vitest';
import { HttpBed, lockPath } from './http-bed.ts';

test('a node whose clients ask for more than it lets in renews what is held, as it does for other holders', async () => {
  const admissions: Admission[] = [];
  const bed = new HttpBed(({ backend, clock }) => {
    const admission = new Admission({ clock, logger: silentLogger }, { requestsPerSecondMax: 10 });
    admissions.push(admission);
    return new AdmittedBackend(backend, admission);
  });
  const held = await bed.acquire('l');
  const { session } = held;
  await bed.done({ target: lockPath('l', 'force-release') });
  const other = await bed.acquire('m');
  while (admissions.every((admission) => admission.admit('ordinary') === undefined));
  expect(await bed.done({ target: lockPath('m', 'renew'), body: other })).toMatchObject({ session: other.session });
  expect(await bed.refused({ target: lockPath('l', 'renew'), body: held })).toBe('409 LOCK_NOT_HELD');
  expect(await bed.done({ target: `/v1/sessions/${session}/renew` })).toMatchObject({ session });
  // Whoever only asks is refused.
  const checks = [{ name: 'm', version: other.version }];
  expect(await bed.refused({ target: '/v1/check', body: { checks } })).toBe('429 RESOURCE_EXHAUSTED');
});
