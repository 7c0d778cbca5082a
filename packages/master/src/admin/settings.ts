import {
  defineOptions,
  durationMs,
  kebabName,
  type OptionDefinition,
  OptionsError,
  type OptionValues,
  parseOptions,
  ServiceError,
  suggest,
} from '@remora/base';
import type { SettingInfo } from '@remora/protocol';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;

/** What operators of a cluster can set while it runs; each row is all there is to say about one. */
const schema = defineOptions({
  envPrefix: '',
  definitions: {
    suspectAfter: {
      type: durationMs({ min: 500, max: DAY }),
      default: 3 * SECOND,
      desc: 'Silence after which a node is shown as suspect, and not counted on for new ranges. Nodes report every second.',
    },
    downAfter: {
      type: durationMs({ min: SECOND, max: 30 * DAY }),
      default: 10 * MINUTE,
      desc: 'Silence after which a node is shown as down. Keep it above the time that a restart takes.',
    },
  },
  relations: [
    {
      between: ['downAfter', 'suspectAfter'],
      holds: ({ downAfter, suspectAfter }) => downAfter > suspectAfter,
      must: 'be longer than suspect-after',
    },
  ],
});

export type ClusterSettings = OptionValues<typeof schema.definitions>;
type SettingName = keyof ClusterSettings;

/** What was set, by name, as it is written; the others have their defaults. */
export type SettingTexts = ReadonlyMap<string, string>;

const NAMES = new Map(Object.keys(schema.definitions).map((option) => [kebabName(option), option as SettingName]));

/**
 * The values in force. A text that this program does not know or cannot read was written by another version of it, and
 * counts as not set: so does all of it if the values do not go together.
 */
export function effectiveSettings(texts: SettingTexts): ClusterSettings {
  const flags: Partial<Record<SettingName, string>> = {};
  for (const [name, option] of NAMES) {
    const text = texts.get(name);
    if (text !== undefined && schema.definitions[option].type.parse(text).ok) flags[option] = text;
  }
  try {
    return parseOptions(schema, { flags });
  } catch (error) {
    if (error instanceof OptionsError) return parseOptions(schema, {});
    throw error;
  }
}

/**
 * The text to be kept for a setting, in one form whichever way it was written; empty for the default.
 * @throws ServiceError INVALID_ARGUMENT that says what would be right: for a name, a value, or one that does not go with
 *     the others.
 */
export function checkSetting(texts: SettingTexts, name: string, value: string): string {
  const option = NAMES.get(name);
  if (option === undefined) throw unknownSetting(name);
  const definition: OptionDefinition<number> = schema.definitions[option];
  const reading = value === '' ? undefined : definition.type.parse(value);
  if (reading?.ok === false) {
    throw new ServiceError(
      'INVALID_ARGUMENT',
      `${name}: ${JSON.stringify(value)} is not right: expected ${reading.expected}`,
    );
  }
  const text = reading === undefined || reading.value === definition.default ? '' : definition.type.show(reading.value);
  const chosen = { ...effectiveSettings(texts), [option]: reading?.value ?? definition.default };
  for (const { between, holds, must } of schema.relations) {
    if (holds(chosen)) continue;
    const shown = between.map((other) => `${kebabName(other)} ${schema.definitions[other].type.show(chosen[other])}`);
    throw new ServiceError(
      'INVALID_ARGUMENT',
      `${kebabName(between[0] ?? name)} must ${must}; it would be ${shown.join(', ')}`,
    );
  }
  return text;
}

function unknownSetting(name: string): ServiceError {
  const meant = suggest(name, NAMES.keys());
  const hint = meant === undefined ? '' : `, did you mean ${meant}?`;
  const known = [...NAMES.keys()].join(', ');
  return new ServiceError('INVALID_ARGUMENT', `there is no setting "${name}"${hint} There are: ${known}`);
}

/** Every setting with its value, for people. */
export function describeSettings(texts: SettingTexts): readonly SettingInfo[] {
  const values = effectiveSettings(texts);
  return [...NAMES].map(([name, option]) => {
    const { type, default: defaultValue, desc } = schema.definitions[option];
    return {
      name,
      value: type.show(values[option]),
      defaultValue: type.show(defaultValue),
      placeholder: type.placeholder,
      description: desc,
    };
  });
}
