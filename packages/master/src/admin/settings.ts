import {
  bool,
  bytes,
  defineOptions,
  durationMs,
  int,
  kebabName,
  list,
  type OptionDefinition,
  type OptionsSchema,
  type OptionType,
  type OptionValues,
  parseOptions,
  ServiceError,
  string,
  suggest,
} from '@remora/base';
import type { SettingInfo } from '@remora/protocol';
import {
  DEFAULT_SETTINGS,
  describeSetting,
  type NumberSetting,
  numbersFrom,
  SETTING_NAMES,
  type SettingName,
  type Settings,
} from '../scheduling/settings.ts';
import {
  mergePolicyOf,
  RANGE_RELATIONS,
  RANGE_SETTINGS,
  type RangeSettings,
  rangeSettingsFrom,
} from './range-settings.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;

/** The settings of scheduling: `nodeSettleMs` is written as `node-settle`, with a unit. */
type OptionName<Name extends string> = Name extends `${infer Base}Ms` ? Base : Name;
type NumberDefinition = { readonly type: OptionType<number>; readonly default: number; readonly desc: string };
type NumberDefinitions = { readonly [Name in SettingName as OptionName<Name>]: NumberDefinition };

function optionName(name: SettingName): string {
  return name.replace(/Ms$/, '');
}

function typeOf({ unit, min, max }: NumberSetting): OptionType<number> {
  if (unit === 'ms') return durationMs({ min, max });
  return unit === 'bytes' ? bytes({ min, max }) : int({ min, max });
}

const NUMBER_DEFINITIONS = Object.fromEntries(
  SETTING_NAMES.map((name) => {
    const setting = describeSetting(name);
    const definition: NumberDefinition = { type: typeOf(setting), default: setting.default, desc: setting.desc };
    return [optionName(name), definition];
  }),
) as NumberDefinitions;

const LEVEL = { regex: /^[A-Za-z0-9][A-Za-z0-9._-]*$/, says: 'letters, digits, dots, dashes and underscores' };

const DEFINITIONS = {
  suspectAfter: {
    type: durationMs({ min: 500, max: DAY }),
    default: 3 * SECOND,
    desc: 'Silence after which a node is shown as suspect and gets nothing new. Nodes report every second.',
  },
  downAfter: {
    // Three reports: with less, nodes would count as down between two of them, and lose their replicas and memberships.
    type: durationMs({ min: 3 * SECOND, max: 30 * DAY }),
    default: DEFAULT_SETTINGS.replicaDownAfterMs,
    desc: 'Silence after which a node counts as down and its replicas are replaced. Keep it above the duration of a restart.',
  },
  scheduling: {
    type: bool(),
    default: true,
    desc: 'Repair, move and balance replicas and leaders. false: only changes requested for a single range are made.',
  },
  isolationLevels: {
    type: list(string({ placeholder: '<level>', pattern: LEVEL, maxLength: 64 }), {
      ...{ minLength: 1, maxLength: 8 },
    }),
    default: DEFAULT_SETTINGS.isolationLevels,
    desc: 'Node labels across which the replicas of a range are spread, from widest to narrowest.',
  },
  ...RANGE_SETTINGS,
  ...NUMBER_DEFINITIONS,
} satisfies Readonly<Record<string, OptionDefinition<unknown>>>;

export type ClusterSettings = OptionValues<typeof DEFINITIONS>;
type ClusterSettingName = keyof ClusterSettings;

const NAMES = new Map(Object.keys(DEFINITIONS).map((option) => [kebabName(option), option as ClusterSettingName]));

/** The settings that were set, by name and as text; all others have their defaults. */
export type SettingTexts = ReadonlyMap<string, string>;

/** The values of settings that were not set. */
export interface FirstValues {
  /** The number of replicas of a range in a cluster that was founded like this one. */
  readonly replicas: number;
  /** Whether the cluster is scheduled; true by default. */
  readonly scheduling?: boolean;
  /** When ranges are split and merged automatically. */
  readonly ranges?: Partial<RangeSettings>;
}

/** The settings that administrators can change while the cluster runs. */
export class SettingsSchema {
  readonly #schema: OptionsSchema<typeof DEFINITIONS>;

  constructor({ replicas, scheduling = true, ranges = {} }: FirstValues) {
    this.#schema = defineOptions({
      envPrefix: '',
      definitions: {
        ...DEFINITIONS,
        replicas: { ...DEFINITIONS.replicas, default: replicas },
        scheduling: { ...DEFINITIONS.scheduling, default: scheduling },
        ...rangeSettingsFrom(ranges),
      },
      relations: [
        {
          between: ['downAfter', 'suspectAfter'],
          holds: ({ downAfter, suspectAfter }) => downAfter > suspectAfter,
          must: 'be longer than suspect-after',
        },
        {
          between: ['targetSpacePercent', 'lowSpacePercent'],
          holds: ({ targetSpacePercent, lowSpacePercent }) => targetSpacePercent > lowSpacePercent,
          must: 'be above low-space-percent, or replicas would move back and forth',
        },
        ...RANGE_RELATIONS,
      ],
    });
  }

  /**
   * The values in force. A text that this program does not know or cannot read was written by another version of it,
   * and counts as not set. Settings that contradict each other count as not set too, if one of them may be set and the
   * other a default, because the master that led when it was set may have had another default. No other settings are
   * dropped, because they decide which replicas are repaired and how.
   */
  effective(texts: SettingTexts): ClusterSettings {
    const flags: Partial<Record<ClusterSettingName, string>> = {};
    for (const [name, option] of NAMES) {
      const text = texts.get(name);
      if (text !== undefined && this.#definition(option).type.parse(text).ok) flags[option] = text;
    }
    for (;;) {
      const values = parseOptions({ ...this.#schema, relations: [] }, { flags });
      const broken = this.#schema.relations.filter(({ holds }) => !holds(values)).flatMap(({ between }) => between);
      const set = broken.filter((option) => flags[option] !== undefined);
      if (set.length === 0) return values;
      for (const option of set) delete flags[option];
    }
  }

  /**
   * Returns the text to store for a setting, in one canonical form; empty for the default. A value that equals the
   * default here is stored if it was requested: another master may have another default, by its options.
   * @throws ServiceError INVALID_ARGUMENT that names the valid form: for a name, a value, or a value that contradicts
   * the others.
   */
  check(texts: SettingTexts, name: string, value: string): string {
    const option = NAMES.get(name);
    if (option === undefined) throw unknownSetting(name);
    const { type, default: byDefault } = this.#definition(option);
    const reading = value === '' ? ({ ok: true, value: byDefault } as const) : type.parse(value);
    if (!reading.ok) {
      const message = `${name}: invalid value ${JSON.stringify(value)}: expected ${reading.expected}`;
      throw new ServiceError('INVALID_ARGUMENT', message);
    }
    this.#checkRelations({ ...this.effective(texts), [option]: reading.value }, name);
    return value === '' ? '' : type.show(reading.value);
  }

  /** Every setting with its value, for people. */
  describe(texts: SettingTexts): readonly SettingInfo[] {
    const values = this.effective(texts);
    return [...NAMES].map(([name, option]) => {
      const { type, default: byDefault, desc } = this.#definition(option);
      const [value, defaultValue] = [type.show(values[option]), type.show(byDefault)];
      return { name, value, defaultValue, placeholder: type.placeholder, description: desc };
    });
  }

  #checkRelations(chosen: ClusterSettings, name: string): void {
    for (const { between, holds, must } of this.#schema.relations) {
      if (holds(chosen)) continue;
      const shown = between.map((other) => `${kebabName(other)} ${this.#definition(other).type.show(chosen[other])}`);
      const message = `${kebabName(between[0] ?? name)} must ${must}; it would be ${shown.join(', ')}`;
      throw new ServiceError('INVALID_ARGUMENT', message);
    }
  }

  /** Its type does not matter here: the values come from the definition's own type. */
  #definition(option: ClusterSettingName): OptionDefinition<unknown> {
    return this.#schema.definitions[option];
  }
}

function unknownSetting(name: string): ServiceError {
  const meant = suggest(name, NAMES.keys());
  const hint = meant === undefined ? '.' : `, did you mean ${meant}?`;
  const known = [...NAMES.keys()].join(', ');
  return new ServiceError('INVALID_ARGUMENT', `unknown setting "${name}"${hint} The settings are: ${known}`);
}

/** The settings that scheduling uses. */
export function schedulingSettings(settings: ClusterSettings): Settings {
  const values: Readonly<Record<string, unknown>> = settings;
  return {
    ...numbersFrom((name) => Number(values[optionName(name)])),
    replicaDownAfterMs: settings.downAfter,
    isolationLevels: settings.isolationLevels,
    merging: mergePolicyOf(settings),
  };
}
