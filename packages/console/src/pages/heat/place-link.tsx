import { Text } from '../../kit/text.tsx';
import { addressOf } from '../../logic/location.ts';
import { isOne, namedAt, spanText } from '../../logic/routing-key.ts';
import { keyAddress } from '../keys/key-address.ts';
import { lockAddress } from '../locks/lock-address.ts';

interface SpanLinkProps {
  readonly from: string;
  readonly to: string;
}

/** The keys of a column: a link to the key, the lock or the sessions if it is one, otherwise to their heat. */
export function SpanLink({ from, to }: SpanLinkProps) {
  return (
    <a class="mono" href={addressOfSpan(from, to)}>
      <Text value={spanText(from, to)} max={120} />
    </a>
  );
}

function addressOfSpan(from: string, to: string): string {
  if (!isOne(from, to)) return addressOf('heat', { start: from, end: to });
  const named = namedAt(from);
  if (named === undefined)
    return addressOf('sessions', { search: `${from.slice('lease:'.length).replace(/^0+/, '')}.` });
  return named.kind === 'key' ? keyAddress(named.key) : lockAddress(named);
}
