/** The settings of the scheduling, and the bounds within which administrators may set them (admin/settings.ts). */
export interface NumberSetting {
  readonly default: number;
  readonly min: number;
  readonly max: number;
  readonly unit: 'ms' | 'bytes' | 'percent' | 'entries' | 'count' | 'perSecond';
  readonly desc: string;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const MIB = 1024 * 1024;

const NUMBERS = {
  replicas: {
    default: 3,
    min: 1,
    max: 7,
    unit: 'count',
    desc: 'Number of voters of a range. An even number survives no more failures than the odd number below it.',
  },
  nodeSettleMs: {
    default: 30 * SECOND,
    min: 0,
    max: HOUR,
    unit: 'ms',
    desc: 'How long a node must be up before balancing moves replicas or leaders to it.',
  },
  moveCooldownMs: {
    default: 2 * MINUTE,
    min: 0,
    max: 24 * HOUR,
    unit: 'ms',
    desc: 'Time between two balancing moves of the same range.',
  },
  retryAfterMs: {
    default: 10 * MINUTE,
    min: SECOND,
    max: 24 * HOUR,
    unit: 'ms',
    desc: 'How long a node is avoided for a range after creating a replica of that range on it failed.',
  },
  countTolerancePercent: {
    default: 5,
    min: 0,
    max: 100,
    unit: 'percent',
    desc: 'Tolerated difference between nodes in leader and replica counts, in percent of the mean. A difference of 1 is always tolerated.',
  },
  bytesTolerancePercent: {
    default: 10,
    min: 1,
    max: 100,
    unit: 'percent',
    desc: 'Tolerated difference between nodes in stored bytes, in percent of the mean.',
  },
  bytesGapMin: {
    default: 256 * MIB,
    min: 0,
    max: 2 ** 50,
    unit: 'bytes',
    desc: 'Smaller differences in stored bytes are not balanced.',
  },
  loadTolerancePercent: {
    default: 20,
    min: 1,
    max: 100,
    unit: 'percent',
    desc: 'Tolerated difference between nodes in requests per second, in percent of the mean.',
  },
  loadGapMin: {
    default: 500,
    min: 0,
    max: 1_000_000_000,
    unit: 'perSecond',
    desc: 'Smaller differences in requests per second are not balanced.',
  },
  lowSpacePercent: {
    default: 10,
    min: 0,
    max: 100,
    unit: 'percent',
    desc: 'Free disk space below which replicas are moved off a node.',
  },
  targetSpacePercent: {
    default: 20,
    min: 0,
    max: 100,
    unit: 'percent',
    desc: 'Free disk space that a node must have left after it receives a replica.',
  },
  operatorsMax: {
    default: 256,
    min: 1,
    max: 10_000,
    unit: 'count',
    desc: 'Maximum number of running operators in the cluster.',
  },
  balanceOperatorsMax: {
    default: 64,
    min: 0,
    max: 10_000,
    unit: 'count',
    desc: 'Maximum number of running operators in the cluster per kind of balancing.',
  },
  receivesPerNodeMax: {
    default: 4,
    min: 1,
    max: 100,
    unit: 'count',
    desc: 'Maximum number of replicas that a node receives at a time. Balancing leaves one place free for repairs.',
  },
  sendsPerNodeMax: {
    default: 4,
    min: 1,
    max: 100,
    unit: 'count',
    desc: 'Maximum number of replicas that the leaders on a node send at a time. Balancing leaves one place free for repairs.',
  },
  transfersPerNodeMax: {
    default: 8,
    min: 1,
    max: 1_000,
    unit: 'count',
    desc: 'Maximum number of leaders that are being transferred to a node at a time.',
  },
  splitsUnderWayMax: {
    default: 32,
    min: 0,
    max: 10_000,
    unit: 'count',
    desc: 'Maximum number of automatic splits at a time. 0: no automatic splits; only requested splits are done.',
  },
  mergesUnderWayMax: {
    default: 4,
    min: 0,
    max: 1_000,
    unit: 'count',
    desc: 'Maximum number of automatic merges at a time. 0: no automatic merges.',
  },
  snapshotBytesPerS: {
    default: 4 * MIB,
    min: 1_024,
    max: 2 ** 40,
    unit: 'bytes',
    desc: 'Rate below which sending a replica counts as stuck.',
  },
} as const satisfies Record<string, NumberSetting>;

export type SettingName = keyof typeof NUMBERS;

/** When adjacent ranges are merged automatically (schedulers/merge.ts). */
export interface MergePolicy {
  readonly enabled: boolean;
  /** The limit for the total size of the two. */
  readonly bytesMax: number;
  readonly quietMs: number;
  /** Also removes borders that a person chose. */
  readonly chosenBorders: boolean;
  /** When a range is split; loads of 0: never for load. */
  readonly splits: { readonly bytes: number; readonly requestsPerS: number; readonly bytesPerS: number };
}

export type Settings = Readonly<Record<SettingName, number>> & {
  /** Silence after which a replica is replaced. */
  readonly replicaDownAfterMs: number;
  /** Labels that keep replicas apart, from wide to narrow. */
  readonly isolationLevels: readonly string[];
  readonly merging: MergePolicy;
};

export const SETTING_NAMES = Object.keys(NUMBERS) as readonly SettingName[];

export const DEFAULT_SETTINGS: Settings = {
  ...numbersFrom((name) => NUMBERS[name].default),
  replicaDownAfterMs: 10 * MINUTE,
  isolationLevels: ['zone', 'rack', 'host'],
  merging: {
    enabled: true,
    bytesMax: 16 * MIB,
    quietMs: 10 * MINUTE,
    chosenBorders: false,
    splits: { bytes: 64 * MIB, requestsPerS: 10_000, bytesPerS: 32 * MIB },
  },
};

export function numbersFrom(of: (name: SettingName) => number): Readonly<Record<SettingName, number>> {
  const entries = SETTING_NAMES.map((name) => [name, of(name)] as const);
  return Object.fromEntries(entries) as Record<SettingName, number>;
}

/** Unit, bounds, default and meaning of a setting. */
export function describeSetting(name: SettingName): NumberSetting {
  return NUMBERS[name];
}
