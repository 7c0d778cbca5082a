/** What scheduling goes by, and the bounds in which operators of a cluster may set it (admin/settings.ts). */
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
    desc: 'Voters of a range. Even numbers survive no more failures than the odd number below.',
  },
  nodeSettleMs: {
    default: 30 * SECOND,
    min: 0,
    max: HOUR,
    unit: 'ms',
    desc: 'How long a node has to be up before balancing gives it anything.',
  },
  moveCooldownMs: {
    default: 2 * MINUTE,
    min: 0,
    max: 24 * HOUR,
    unit: 'ms',
    desc: 'How long balancing leaves a range alone after it has moved something of it.',
  },
  retryAfterMs: {
    default: 10 * MINUTE,
    min: SECOND,
    max: 24 * HOUR,
    unit: 'ms',
    desc: 'How long a node on which a replica could not be made is avoided for that range.',
  },
  countTolerancePercent: {
    default: 5,
    min: 0,
    max: 100,
    unit: 'percent',
    desc: 'By how much of the mean the counts of leaders and replicas may differ between nodes; 1 they may always.',
  },
  bytesTolerancePercent: {
    default: 10,
    min: 1,
    max: 100,
    unit: 'percent',
    desc: 'By how much of the mean the stored bytes may differ between nodes.',
  },
  bytesGapMin: {
    default: 256 * MIB,
    min: 0,
    max: 2 ** 50,
    unit: 'bytes',
    desc: 'Smaller differences in stored bytes are left alone.',
  },
  loadTolerancePercent: {
    default: 20,
    min: 1,
    max: 100,
    unit: 'percent',
    desc: 'By how much of the mean the requests per second may differ between nodes.',
  },
  loadGapMin: {
    default: 500,
    min: 0,
    max: 1_000_000_000,
    unit: 'perSecond',
    desc: 'Smaller differences in requests per second are left alone.',
  },
  lowSpacePercent: {
    default: 10,
    min: 0,
    max: 100,
    unit: 'percent',
    desc: 'Free space below which a node gives replicas away.',
  },
  targetSpacePercent: {
    default: 20,
    min: 0,
    max: 100,
    unit: 'percent',
    desc: 'Free space that a node must still have after it has taken a replica.',
  },
  operatorsMax: {
    default: 256,
    min: 1,
    max: 10_000,
    unit: 'count',
    desc: 'Operators under way in the cluster.',
  },
  balanceOperatorsMax: {
    default: 64,
    min: 0,
    max: 10_000,
    unit: 'count',
    desc: 'Operators of one kind of balancing under way in the cluster.',
  },
  receivesPerNodeMax: {
    default: 4,
    min: 1,
    max: 100,
    unit: 'count',
    desc: 'Replicas that a node may be receiving; balancing leaves one place free for repair.',
  },
  sendsPerNodeMax: {
    default: 4,
    min: 1,
    max: 100,
    unit: 'count',
    desc: 'Replicas that the leaders on a node may be sending; balancing leaves one place free for repair.',
  },
  transfersPerNodeMax: {
    default: 8,
    min: 1,
    max: 1_000,
    unit: 'count',
    desc: 'Leaders on their way to a node.',
  },
  splitsUnderWayMax: {
    default: 32,
    min: 0,
    max: 10_000,
    unit: 'count',
    desc: 'Ranges that may be splitting by themselves at a time. 0: none does, and only splits that are asked for are done.',
  },
  mergesUnderWayMax: {
    default: 4,
    min: 0,
    max: 1_000,
    unit: 'count',
    desc: 'Neighbours that may be merged by themselves at a time. 0: none are.',
  },
  snapshotBytesPerS: {
    default: 4 * MIB,
    min: 1_024,
    max: 2 ** 40,
    unit: 'bytes',
    desc: 'Rate below which the sending of a replica counts as stuck.',
  },
} as const satisfies Record<string, NumberSetting>;

export type SettingName = keyof typeof NUMBERS;

/** When neighbours are merged without anybody asking for it (schedulers/merge.ts). */
export interface MergePolicy {
  readonly enabled: boolean;
  /** Of two neighbours together. */
  readonly bytesMax: number;
  readonly quietMs: number;
  /** Also where people chose the border. */
  readonly chosenBorders: boolean;
  /** When one range is split; loads of 0: never for that. */
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
