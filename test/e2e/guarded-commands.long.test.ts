/** What becomes of a command when the `remora` that runs it under a lock is sent signals, or dies. */
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { commandLine, RemoraCommand, type Run } from './command.ts';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';
import { childrenOf, isRunning, isStopped } from './process-state.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await Cluster.start({ nodes: 1 });
});
afterAll(() => cluster.stop());

const command = new RemoraCommand(() => cluster.endpoints);
/** Processes of tests, killed afterwards whatever came of these. */
const started: number[] = [];
afterEach(async () => {
  await command.endAll();
  for (const pid of started.splice(0).filter(isRunning)) process.kill(pid, 'SIGKILL');
});
const remora = command.run.bind(command);
const begin = (args: readonly string[]): Run => command.begin(args, { noTerminal: true });

const PATIENCE = { timeoutMs: 60_000 };
const SLOW = 300_000;
/** The three commands that run others, by what they run them under. */
const RUNS: Readonly<Record<string, (name: string) => readonly string[]>> = {
  lock: (name) => ['lock', 'run', name],
  election: (name) => ['election', 'run', name],
  barrier: (name) => ['barrier', 'run', '--parties', '1', name],
};
const KINDS = Object.keys(RUNS);
const runOf = (kind: string, name: string, script: string) => [...(RUNS[kind]?.(name) ?? []), '--', 'sh', '-c', script];

/** The ids that a run has printed, once there are so many. */
async function pidsOf(run: Run, count: number): Promise<readonly number[]> {
  const pids = await eventually(
    'the command says its processes',
    () => {
      const found = [...run.out.matchAll(/pid (\d+)\r?\n/g)].map(([, pid]) => Number(pid));
      return found.length >= count ? found : undefined;
    },
    PATIENCE,
  );
  started.push(...pids);
  return pids;
}

/** The process that holds a lock, as is told to others. */
async function holderOf(name: string): Promise<number> {
  const { err } = await remora('lock', 'run', '--wait', '0', name, '--', 'true');
  return Number(/, pid (\d+) since/.exec(err)?.[1]);
}

const allGone = (pids: readonly number[]) => eventually('all are gone', () => !pids.some(isRunning), PATIENCE);

/** Ignores what can be ignored, in two processes. */
const STUBBORN = `
  trap '' HUP INT QUIT TERM USR1 USR2 ALRM
  sh -c 'echo "pid $$"; while :; do sleep 0.1; done' &
  echo "pid $$"
  while :; do sleep 0.1; done`;

/** Says whether any of these processes does something. */
function checkOf(pids: readonly number[]): string {
  return `for pid in ${pids.join(' ')}; do
    case "$(sed 's/.*) //' /proc/$pid/stat 2>/dev/null)" in ''|[ZX]*) ;; *) echo overlap ;; esac
  done; echo begun`;
}

describe('a signal', () => {
  test.each(KINDS)('of each kind that %s run is sent reaches its command, and ends nothing by itself', async (kind) => {
    const signals = ['HUP', 'INT', 'QUIT', 'USR1', 'USR2', 'ALRM', 'CONT', 'WINCH'];
    const traps = signals.map((signal) => `trap 'echo got ${signal}' ${signal}`).join('; ');
    const script = `${traps}; trap 'exit 9' TERM; echo on; while :; do sleep 0.05; done`;
    const run = begin(runOf(kind, `signals/${kind}`, script));
    await eventually('it runs', () => run.out === 'on\n', PATIENCE);
    for (const [i, signal] of signals.entries()) {
      run.child.kill(`SIG${signal}` as NodeJS.Signals);
      const got = signals.slice(0, i + 1).map((each) => `got ${each}\n`);
      await eventually(`SIG${signal} has come`, () => run.out === `on\n${got.join('')}`, PATIENCE);
    }
    run.child.kill('SIGTERM');
    expect((await run.ended).code).toBe(9);
  });

  test.each(['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2', 'SIGALRM'] as const)(
    '%s while the lock is waited for gives up the wait',
    async (signal) => {
      const holder = begin(runOf('lock', 'waited', 'echo "pid $$"; exec sleep 60'));
      await pidsOf(holder, 1);
      const waits = begin(runOf('lock', 'waited', 'echo never'));
      await eventually('it waits', () => waits.err.includes('waiting for waited'), PATIENCE);
      for (const harmless of ['SIGCONT', 'SIGWINCH'] as const) waits.child.kill(harmless);
      waits.child.kill(signal);
      const numbers = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGTERM: 15, SIGUSR1: 10, SIGUSR2: 12, SIGALRM: 14 };
      expect(await waits.ended).toMatchObject({ code: 128 + numbers[signal], out: '' });
    },
  );

  test('that ends the first process of a command ends what that has started, before the lock is free', async () => {
    const script = `sh -c 'echo "pid $$"; exec sleep 300' & echo "pid $$"; wait`;
    const run = begin(runOf('lock', 'tree', script));
    const pids = await pidsOf(run, 2);
    const next = begin(runOf('lock', 'tree', checkOf(pids)));
    run.child.kill('SIGTERM');
    expect((await run.ended).code).toBe(143);
    expect(pids.filter(isRunning)).toEqual([]);
    expect((await next.ended).out).toBe('begun\n');
  });

  test('that a command ignores leaves it the lock, however many come', async () => {
    const run = begin(runOf('lock', 'ignores', STUBBORN));
    const pids = await pidsOf(run, 2);
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR2', 'SIGALRM'] as const) {
      run.child.kill(signal);
    }
    const next = await remora('lock', 'run', '--wait', '1s', 'ignores', '--', 'echo', 'never');
    expect([next.code, run.alive, ...pids.map(isRunning)]).toEqual([75, true, true, true]);
    run.child.kill('SIGKILL');
    await allGone(pids);
  });
});

describe('the exit code', () => {
  test.each(KINDS)('of %s run is 128 and the number of the signal that ended its command', async (kind) => {
    const codes: Record<string, number | null> = {};
    for (const signal of ['SEGV', 'QUIT', 'USR1', 'ABRT', 'PIPE', 'ALRM']) {
      codes[signal] = (await remora(...runOf(kind, `codes/${kind}`, `ulimit -c 0; kill -${signal} $$`))).code;
    }
    expect(codes).toEqual({ SEGV: 139, QUIT: 131, USR1: 138, ABRT: 134, PIPE: 141, ALRM: 142 });
  });
});

describe('when the process that holds the lock dies', () => {
  test.each([
    ['SIGKILL', 'lock'],
    ['SIGSEGV', 'lock'],
    ['SIGABRT', 'lock'],
    ['SIGKILL', 'election'],
    ['SIGKILL', 'barrier'],
  ] as const)(
    'by %s under %s run, its command is ended with all that it started, whatever it ignores',
    async (signal, kind) => {
      const run = begin(runOf(kind, `dies/${kind}`, STUBBORN));
      const pids = await pidsOf(run, 2);
      run.child.kill(signal);
      await once(run.child, 'exit');
      await allGone(pids);
    },
    SLOW,
  );

  test(
    'its command is given its grace, and ended, though the program that ends it is sent every other signal',
    async () => {
      const directory = mkdtempSync(join(tmpdir(), 'remora-grace-'));
      const go = join(directory, 'go');
      const asked = `echo asked; until [ -e ${go} ]; do sleep 0.1; done; echo done; exit`;
      const script = `trap '${asked}' TERM; echo "pid $$"; while :; do sleep 0.1; done`;
      const options = ['--ttl', '10m', '--kill-after', '60s'];
      const run = begin(['lock', 'run', ...options, 'grace', '--', 'sh', '-c', script]);
      const pids = await pidsOf(run, 1);
      const [guard = 0] = childrenOf(run.child.pid ?? 0, 'REMORA_GUARD');
      run.child.kill('SIGKILL');
      await eventually('the command is asked to end', () => run.out.includes('asked'), PATIENCE);
      const enders = childrenOf(guard, 'guard-main');
      for (const signal of ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2', 'SIGALRM'] as const) {
        for (const ender of enders) process.kill(ender, signal);
      }
      await sleep(500);
      expect([childrenOf(guard, 'guard-main'), enders.length, ...pids.map(isRunning)]).toEqual([enders, 1, true]);
      writeFileSync(go, '');
      await allGone(pids);
      expect(run.out).toContain('done');
      rmSync(directory, { recursive: true });
    },
    SLOW,
  );

  test('its command is killed also when the Node that would end it is there no more, as after an upgrade', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'remora-node-'));
    try {
      const node = join(directory, 'node');
      copyFileSync(process.execPath, node);
      const run = command.begin(runOf('lock', 'upgraded', STUBBORN), { noTerminal: true, node });
      const pids = await pidsOf(run, 2);
      rmSync(node);
      run.child.kill('SIGKILL');
      await allGone(pids);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  /** What is done to a run beside killing it. */
  const CASES: readonly {
    readonly name: string;
    readonly script: string;
    readonly count: number;
    readonly first?: (pids: readonly number[], run: Run) => void | Promise<void>;
  }[] = [
    { name: 'whose command ignores signals', script: STUBBORN, count: 2 },
    {
      name: 'whose command is stopped',
      script: STUBBORN,
      count: 2,
      first: (pids) => {
        for (const pid of pids) process.kill(pid, 'SIGSTOP');
      },
    },
    {
      name: 'whose command has lost its first process, and goes on',
      script: `sh -c 'trap "" TERM; echo "pid $$"; while :; do sleep 0.1; done' & exit 5`,
      count: 1,
      first: (_, run) =>
        eventually(
          'it waits for the others',
          () => run.err.includes('processes that it started are still running'),
          PATIENCE,
        ).then(() => {}),
    },
    {
      name: 'whose guard was killed before it',
      script: STUBBORN,
      count: 2,
      async first(_, run) {
        const [guard = 0] = childrenOf(run.child.pid ?? 0, 'REMORA_GUARD');
        expect(guard).toBeGreaterThan(0);
        process.kill(guard, 'SIGKILL');
        await eventually('a new one replaced it', () => run.err.includes('a new one replaced it'), PATIENCE);
      },
    },
    {
      name: 'whose guard was sent every other signal',
      script: STUBBORN,
      count: 2,
      first(_, run) {
        const [guard = 0] = childrenOf(run.child.pid ?? 0, 'REMORA_GUARD');
        for (const signal of ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGUSR1', 'SIGALRM', 'SIGPIPE'] as const) {
          process.kill(guard, signal);
        }
      },
    },
  ];
  test.each(CASES.map((each) => [each.name, each] as const))(
    'of a run %s, the next one on this machine begins when the command is gone, and not before',
    async (name, { script, count, first }) => {
      const lock = `left/${name}`;
      // It would be free by itself long after this test.
      const run = begin(['lock', 'run', '--ttl', '10m', lock, '--', 'sh', '-c', script]);
      const pids = await pidsOf(run, count);
      await first?.(pids, run);
      const next = begin(['lock', 'run', lock, '--', 'sh', '-c', checkOf(pids)]);
      await eventually('the next one waits', () => next.err.includes('waiting for'), PATIENCE);
      run.child.kill('SIGKILL');
      const latest = begin(['lock', 'run', lock, '--', 'sh', '-c', checkOf(pids)]);
      expect([(await next.ended).out, (await latest.ended).out]).toEqual(['begun\n', 'begun\n']);
      expect(pids.filter(isRunning)).toEqual([]);
    },
    SLOW,
  );

  test(
    'together with its guard, the next run on this machine does not get the lock while the command lives',
    async () => {
      const run = begin(['lock', 'run', '--ttl', '10m', 'both', '--', 'sh', '-c', STUBBORN]);
      const pids = await pidsOf(run, 2);
      const [guard = 0] = childrenOf(run.child.pid ?? 0, 'REMORA_GUARD');
      // Stopped, so that it starts no other guard.
      run.child.kill('SIGSTOP');
      process.kill(guard, 'SIGKILL');
      run.child.kill('SIGKILL');
      const early = await remora('lock', 'run', '--wait', '2s', 'both', '--', 'echo', 'never');
      expect([early.code, ...pids.map(isRunning)]).toEqual([75, true, true]);
      for (const pid of pids) process.kill(pid, 'SIGKILL');
      expect((await remora('lock', 'run', '--wait', '30s', 'both', '--', 'echo', 'mine')).out).toBe('mine\n');
    },
    SLOW,
  );

  test('a process that has left the session of the command goes on', async () => {
    const script = `setsid sh -c 'echo "pid $$"; exec sleep 300' & echo "pid $$"; wait; sleep 300`;
    const run = begin(runOf('lock', 'daemon', script));
    const pids = await pidsOf(run, 2);
    const daemon = pids.find((pid) => pid !== Number(childrenOf(run.child.pid ?? 0, 'setsid')[0])) ?? 0;
    run.child.kill('SIGKILL');
    await allGone(pids.filter((pid) => pid !== daemon));
    expect(isRunning(daemon)).toBe(true);
  });
});

describe('the lock is held until all processes of the command have ended', () => {
  test('also when its first process is the first to end', async () => {
    const script = `sh -c 'echo "pid $$"; exec sleep 300' & exit 5`;
    const run = begin(runOf('lock', 'behind', script));
    const [left = 0] = await pidsOf(run, 1);
    await eventually(
      'it says so',
      () => run.err.includes(`processes that it started are still running (${left})`),
      PATIENCE,
    );
    expect((await remora('lock', 'run', '--wait', '0', 'behind', '--', 'echo', 'never')).code).toBe(75);
    process.kill(left, 'SIGTERM');
    expect((await run.ended).code).toBe(5);
    expect((await remora('lock', 'show', 'behind')).out).toBe('behind is free\n');
  });

  test('a signal ends those that are left behind', async () => {
    const run = begin(
      runOf('lock', 'behind', `sh -c 'trap "" TERM; echo "pid $$"; while :; do sleep 0.1; done' & exit 5`),
    );
    const pids = await pidsOf(run, 1);
    await eventually('it says so', () => run.err.includes('processes that it started are still running'), PATIENCE);
    run.child.kill('SIGTERM');
    expect((await run.ended).code).toBe(5);
    expect(pids.filter(isRunning)).toEqual([]);
  });

  test('when the lock is lost all of them are ended, however they resist', async () => {
    const run = begin(['lock', 'run', '--kill-after', '200ms', 'resists', '--', 'sh', '-c', STUBBORN]);
    const pids = await pidsOf(run, 2);
    for (const pid of pids) process.kill(pid, 'SIGSTOP');
    await remora('lock', 'release', '--force', 'resists');
    expect((await run.ended).code).toBe(76);
    expect(pids.filter(isRunning)).toEqual([]);
  });
});

describe('in a terminal', () => {
  const inTerminal = (args: readonly string[]): Run => command.begin(args, { terminal: 'itself', open: true });
  const type = (run: Run, text: string) => run.child.stdin?.write(text);
  const shows = (run: Run, text: string) => eventually(`it shows ${text}`, () => run.out.includes(text), PATIENCE);

  test.each(KINDS)('the command of %s run reads from it', async (kind) => {
    const script = 'echo ask; read line </dev/tty; echo "got <$line>"; read more; echo "and <$more>"; exit 7';
    const run = inTerminal(runOf(kind, `terminal/${kind}`, script));
    await shows(run, 'ask');
    type(run, 'hello\r');
    await shows(run, 'got <hello>');
    type(run, 'world\r');
    await shows(run, 'and <world>');
    expect((await run.ended).code).toBe(7);
  });

  test('Ctrl-C reaches the command once, which decides what comes of it', async () => {
    const script = `ulimit -c 0; trap 'n=$((n+1)); echo "key $n"' INT; echo on; while :; do sleep 0.05; done`;
    const run = inTerminal(['lock', 'run', 'keys', '--', 'sh', '-c', script]);
    await shows(run, 'on');
    for (const n of [1, 2]) {
      type(run, '\x03');
      await shows(run, `key ${n}`);
    }
    expect((await remora('lock', 'run', '--wait', '0', 'keys', '--', 'echo', 'never')).code).toBe(75);
    expect(run.out).not.toContain('key 3');
    type(run, '\x1c');
    expect((await run.ended).code).toBe(131);
    expect((await remora('lock', 'show', 'keys')).out).toBe('keys is free\n');
  });

  const LOOP = 'echo "pid $$"; while :; do sleep 0.05; done';

  test('Ctrl-Z stops the command with the process that holds its lock, and fg goes on with both', async () => {
    const shell = command.begin([], { terminal: 'shell', open: true });
    type(shell, `${commandLine(['lock', 'run', '--ttl', '10m', 'rests', '--', 'sh', '-c', LOOP])}; echo "code <$?>"\r`);
    const [pid = 0] = await pidsOf(shell, 1);
    type(shell, '\x1a');
    await shows(shell, 'Stopped');
    const holder = await holderOf('rests');
    await eventually('both are stopped', () => isStopped(pid) && isStopped(holder), PATIENCE);
    type(shell, 'fg\r');
    await eventually('it goes on', () => !isStopped(pid), PATIENCE);
    type(shell, '\x03');
    await eventually('it has ended', () => !isRunning(pid), PATIENCE);
    await eventually(
      'it is free',
      async () => (await remora('lock', 'show', 'rests')).out === 'rests is free\n',
      PATIENCE,
    );
  });

  test('a command that was stopped for longer than its lock lasts is ended when it goes on', async () => {
    const shell = command.begin([], { terminal: 'shell', open: true });
    const line = commandLine(['lock', 'run', '--ttl', '1s', 'lapses', '--', 'sh', '-c', `trap "" TERM; ${LOOP}`]);
    type(shell, `${line}\r`);
    const [pid = 0] = await pidsOf(shell, 1);
    type(shell, '\x1a');
    await shows(shell, 'Stopped');
    expect((await remora('lock', 'run', '--wait', '30s', 'lapses', '--', 'echo', 'mine')).out).toBe('mine\n');
    type(shell, 'fg; echo "code <$?>"\r');
    await shows(shell, 'code <76>');
    expect(isRunning(pid)).toBe(false);
  });

  test('an interactive shell has its jobs, and its end is the end', async () => {
    const run = inTerminal(['lock', 'run', 'shell', '--', 'bash', '--norc', '--noprofile', '-i']);
    type(run, 'echo "lock $REMORA_LOCK_NAME"\r');
    await shows(run, 'lock shell');
    type(run, 'sh -c \'echo "pid $$"; exec sleep 300\'\r');
    const [job = 0] = await pidsOf(run, 1);
    type(run, '\x1a');
    await shows(run, 'Stopped');
    type(run, 'kill %1; fg\r');
    await eventually('the job has ended', () => !isRunning(job), PATIENCE);
    type(run, 'exit 4\r');
    expect((await run.ended).code).toBe(4);
  });

  test('the command is ended with all its processes when the one that holds the lock is killed', async () => {
    // The second one has lost its parent, and is known by its environment.
    const script = `(sh -c 'trap "" TERM HUP; echo "pid $$"; while :; do sleep 0.1; done' &) ; trap '' TERM HUP; echo "pid $$"; while :; do sleep 0.1; done`;
    const run = inTerminal(['lock', 'run', '--ttl', '10m', 'killed', '--', 'sh', '-c', script]);
    const pids = await pidsOf(run, 2);
    process.kill(await holderOf('killed'), 'SIGKILL');
    await allGone(pids);
    expect((await remora('lock', 'run', '--wait', '30s', 'killed', '--', 'echo', 'mine')).out).toBe('mine\n');
  });
});
