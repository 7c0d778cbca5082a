import { type Address, formatAddress, type OptionType, parseAddress } from '@remora/base';
import { hostName } from '@remora/gateway';

/** A node's name, and an address that leads to its peer port. */
export interface Member {
  readonly name: string;
  readonly peer: Address;
}

/** A node's location on one level: its zone, its rack. */
export interface Label {
  readonly level: string;
  readonly value: string;
}

const LABEL_LENGTH_MAX = 128;
/** Of nodes and labels. */
export const NAME = { regex: /^[A-Za-z0-9][A-Za-z0-9._-]*$/, says: 'letters, digits, dots, dashes and underscores' };

/** Read in the form in which it is compared. */
export function hostname(): OptionType<string> {
  const expected = 'a host name without a port, such as remora.example.com';
  const parse = (text: string) => {
    const name = /[:[\]]/.test(text) ? undefined : hostName(text);
    return name === undefined ? ({ ok: false, expected } as const) : ({ ok: true, value: name } as const);
  };
  return {
    placeholder: '<host>',
    parse,
    fromFile: (value) => (typeof value === 'string' ? parse(value) : { ok: false, expected }),
    show: (name) => name,
  };
}

export function label(): OptionType<Label> {
  const expected = 'level=value, such as zone=eu-1';
  const parse = (text: string) => {
    const [level = '', value = '', ...rest] = text.split('=');
    return NAME.regex.test(level) && NAME.regex.test(value) && rest.length === 0 && text.length <= LABEL_LENGTH_MAX
      ? ({ ok: true, value: { level, value } } as const)
      : ({ ok: false, expected } as const);
  };
  return {
    placeholder: '<level=value>',
    parse,
    fromFile: (value) => (typeof value === 'string' ? parse(value) : { ok: false, expected }),
    show: ({ level, value }) => `${level}=${value}`,
  };
}

export function member(): OptionType<Member> {
  const expected = 'name=host:port, such as n1=10.0.0.1:7481';
  const parse = (text: string) => {
    const at = text.indexOf('=');
    const name = text.slice(0, Math.max(at, 0));
    const peer = parseAddress(text.slice(at + 1));
    return NAME.regex.test(name) && peer !== undefined
      ? ({ ok: true, value: { name, peer } } as const)
      : ({ ok: false, expected } as const);
  };
  return {
    placeholder: '<name=host:port>',
    parse,
    fromFile: (value) => (typeof value === 'string' ? parse(value) : { ok: false, expected }),
    show: ({ name, peer }) => `${name}=${formatAddress(peer)}`,
  };
}
