/** Services that lock with Curator, the Java library, where it is installed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { eventually } from '../eventually.ts';

const PROGRAM = fileURLToPath(new URL('CuratorService.java', import.meta.url));
const JAVA = '/usr/bin/java';
const JAVAC = '/usr/bin/javac';
const JARS = [
  'curator-recipes',
  'curator-framework',
  'curator-client',
  'zookeeper',
  'zookeeper-jute',
  'guava',
  'slf4j-nop',
];
const NETTY = [
  'handler',
  'transport',
  'transport-native-epoll',
  'transport-native-unix-common',
  'buffer',
  'codec',
  'common',
  'resolver',
];
const CLASSPATH = [...JARS, ...NETTY.map((part) => `netty-${part}`)].map((jar) => `/usr/share/java/${jar}.jar`);
const SAYS_WITHIN_MS = 60_000;

/** Says what is missing, and how to install it; undefined if Curator and a compiler of Java are installed. */
export function missingCurator(): string | undefined {
  const missing = [JAVAC, ...CLASSPATH].find((file) => !existsSync(file));
  const packages = 'default-jdk-headless libcurator-recipes-java libnetty-java';
  return missing && `${missing} is missing; on Debian: apt-get install --no-install-recommends ${packages}`;
}

export class CuratorService {
  readonly #child: ChildProcess;
  readonly #ended: Promise<number | null>;
  #out = '';

  /** The service ends at the end of its input, so that it does not outlive the test. */
  constructor(...args: readonly string[]) {
    const child = spawn(JAVA, ['-Xmx128m', '-cp', CLASSPATH.join(':'), PROGRAM, ...args], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#child = child;
    child.stdout.on('data', (chunk: Buffer) => {
      this.#out += chunk.toString();
    });
    this.#ended = new Promise((resolve) => child.once('close', resolve));
  }

  async says(text: string): Promise<void> {
    await eventually(`the service says ${text}`, () => this.#out.includes(text), { timeoutMs: SAYS_WITHIN_MS });
  }

  /** Ends its input. Resolves to the exit code. */
  release(): Promise<number | null> {
    this.#child.stdin?.end();
    return this.#ended;
  }

  /** Resolves to the exit code once it has ended by itself. */
  end(): Promise<number | null> {
    return this.#ended;
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}
