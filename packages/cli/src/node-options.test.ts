import { OptionsError, parseOptions } from '@remora/base';
import { describe, expect, test } from 'vitest';
import { parseConfig } from './config-file.ts';
import { localPorts } from './local-ports.ts';
import { advertised, httpNames, nodeSchema } from './node-options.ts';
import { createProgram } from './program.ts';
import type { Shell } from './shell.ts';

const SECURE = {
  ...{ ...listening('10.0.0.1'), tlsCert: 'n1.crt', tlsKey: 'n1.key', tlsClientCa: 'ca.crt' },
  ...{ tlsClientCertificates: 'required', tlsPeerCert: 'p.crt', tlsPeerKey: 'p.key', tlsPeerCa: 'peer-ca.crt' },
};
const JOINS_SECURELY = { ...SECURE, join: '10.0.0.2:7481' };

function problems(flags: Record<string, string>): readonly string[] {
  try {
    parseOptions(nodeSchema, { flags });
  } catch (error) {
    if (error instanceof OptionsError) return error.problems.map(({ source, message }) => `${source} ${message}`);
    throw error;
  }
  return [];
}

const FOUNDERS = 'n1=10.0.0.1:7481,n2=10.0.0.2:7481';

describe('relations', () => {
  const rows: readonly { name: string; given: Record<string, string>; says: string | undefined }[] = [
    { name: 'the defaults are consistent', given: {}, says: undefined },
    {
      name: 'the heartbeat is too slow for the election timeout',
      given: { heartbeatInterval: '500ms' },
      says: '--election-timeout must be more than twice',
    },
    {
      name: 'snapshots that would never arrive',
      given: { snapshotBytesPerSecondMax: '100KiB' },
      says: '--snapshot-bytes-per-second-max must be 0 or at least 1MiB',
    },
    {
      name: 'ranges that are split before they are measured',
      given: { splitSize: '1MiB' },
      says: '--split-size must be',
    },
    {
      name: 'ranges that may never be as large as where they are split',
      given: { rangeSizeMax: '64MiB' },
      says: '--range-size-max must be above',
    },
    {
      name: 'small ranges',
      given: { splitCheckSize: '16KiB', splitSize: '32KiB', rangeSizeMax: '64KiB' },
      says: undefined,
    },
    {
      name: 'snapshots that would never arrive while there is other work',
      given: { snapshotBytesPerSecondBusy: '100KiB' },
      says: '--snapshot-bytes-per-second-busy must be 0 or at least 1MiB',
    },
    { name: 'snapshots without a limit', given: { snapshotBytesPerSecondMax: '0' }, says: undefined },
    { name: 'two ports are the same', given: { httpListen: '127.0.0.1:7480' }, says: '--client-listen must differ' },
    { name: 'probes at the HTTP port', given: { healthListen: '127.0.0.1:7482' }, says: '--client-listen must differ' },
    {
      name: 'probes at the HTTP port of all addresses',
      given: { healthListen: '[::]:7482' },
      says: '--client-listen must',
    },
    { name: 'one port on two addresses', given: { healthListen: '127.0.0.2:7482' }, says: undefined },
    { name: 'a reserve without room for the log', given: { diskReserve: '31MiB' }, says: '--disk-reserve must be 0' },
    { name: 'no reserve', given: { diskReserve: '0' }, says: undefined },
    {
      name: 'a drain that outlasts the stop',
      given: { drainDelay: '10s' },
      says: '--drain-delay must be less than --shutdown-timeout',
    },
    { name: 'IPv6', given: listening('[::1]'), says: undefined },
    { name: 'IPv6 without brackets', given: { peerListen: '::1:7481' }, says: 'such as 127.0.0.1:7480 or [::1]:7480' },
    { name: 'a host without a port', given: { peerListen: '127.0.0.1' }, says: 'expected an address as host:port' },
    { name: 'a public address for HTTP alone', given: { httpListen: '10.0.0.1:7482' }, says: '--insecure clients' },
    {
      name: 'a public address for nodes alone',
      given: { peerListen: '10.0.0.1:7481', insecure: 'peers' },
      says: undefined,
    },
    { name: 'probes from anywhere without --insecure', given: { healthListen: '0.0.0.0:7483' }, says: undefined },
    { name: 'names of a proxy', given: { httpAllowedHosts: 'remora.example.com,Lb.' }, says: undefined },
    {
      name: 'a name with a port',
      given: { httpAllowedHosts: 'remora.example.com:80' },
      says: 'expected a host name without a port',
    },
    { name: 'a public address with nothing', given: listening('10.0.0.1'), says: '--insecure clients' },
    {
      name: 'a public address with everything left open',
      given: { ...listening('10.0.0.1'), insecure: 'clients,peers,anonymous' },
      says: undefined,
    },
    { name: 'a public address with TLS and client certificates', given: { ...SECURE }, says: undefined },
    {
      name: 'a public address without TLS for clients',
      given: { ...SECURE, tlsMode: 'plain' },
      says: '--tls-cert and --tls-key',
    },
    {
      name: 'a public address that allows plain text too',
      given: { ...SECURE, tlsMode: 'both' },
      says: '--insecure clients',
    },
    {
      name: 'a public address without TLS for nodes',
      given: { ...SECURE, tlsPeerMode: 'both' },
      says: '--insecure peers',
    },
    {
      name: 'a public address with optional client certificates',
      given: { ...SECURE, tlsClientCertificates: 'optional' },
      says: '--insecure anonymous',
    },
    {
      name: 'a public address with optional client certificates and a password for root',
      given: { ...SECURE, tlsClientCertificates: 'optional', initialRootPasswordFile: 'pw' },
      says: undefined,
    },
    {
      name: 'a public address with a password for root and plain text',
      given: { ...listening('10.0.0.1'), initialRootPasswordFile: 'pw' },
      says: '--insecure clients',
    },
    {
      name: 'a public address of a node that joins, whose cluster has the users',
      given: { ...JOINS_SECURELY, tlsClientCertificates: 'optional' },
      says: undefined,
    },
    {
      name: 'a password for root when joining',
      given: { ...JOINS_SECURELY, initialRootPasswordFile: 'pw' },
      says: '--initial-root-password-file must not be given together with --join',
    },
    { name: 'writes for no audit log', given: { auditWrites: 'true' }, says: 'together with --audit-log' },
    {
      name: 'a public address that serves everybody over TLS',
      given: { ...SECURE, tlsClientCertificates: 'optional', insecure: 'anonymous' },
      says: undefined,
    },
    {
      name: 'a certificate without its key',
      given: { tlsCert: 'a' },
      says: '--tls-cert must be given together with --tls-key',
    },
    {
      name: 'a certificate for nodes without an authority',
      given: { tlsPeerCert: 'a', tlsPeerKey: 'b' },
      says: '--tls-peer-ca',
    },
    {
      name: 'client certificates without an authority',
      given: { tlsCert: 'a', tlsKey: 'b', tlsClientCertificates: 'required' },
      says: '--tls-client-ca',
    },
    {
      name: 'an authority of clients that nobody uses',
      given: { tlsCert: 'a', tlsKey: 'b', tlsClientCa: 'c' },
      says: 'be optional or required',
    },
    { name: 'TLS without a certificate', given: { tlsMode: 'tls' }, says: '--tls-mode must be plain unless' },
    {
      name: 'TLS between nodes without a certificate',
      given: { tlsPeerMode: 'both' },
      says: '--tls-peer-mode must be plain unless',
    },
    {
      name: 'all addresses without an advertised one',
      given: { ...listening('0.0.0.0'), insecure: 'clients,peers,anonymous' },
      says: '--advertise-peer must be set',
    },
    {
      name: 'founding and joining at once',
      given: { join: 'a:1', initialCluster: FOUNDERS },
      says: '--join must not be given together',
    },
    {
      name: 'a founder that is not in its cluster',
      given: { name: 'n3', initialCluster: FOUNDERS },
      says: '--initial-cluster must contain this node',
    },
    {
      name: 'a member named twice',
      given: { initialCluster: 'n1=a:1,n1=b:1' },
      says: 'must name every member and every address only once',
    },
    {
      name: 'a founding member that is no master',
      given: { name: 'n2', initialCluster: FOUNDERS, roles: 'data,gateway' },
      says: '--roles must contain "master"',
    },
    { name: 'a node that joins to be a master only', given: { join: 'a:1', roles: 'master' }, says: undefined },
    {
      name: 'a proxy before the node itself',
      given: { name: 'n1', initialCluster: FOUNDERS, peerProxies: 'n1=a:1' },
      says: '--peer-proxies must name every other node at most once',
    },
    {
      name: 'two proxies before one node',
      given: { name: 'n1', initialCluster: FOUNDERS, peerProxies: 'n2=a:1,n2=b:1' },
      says: '--peer-proxies must name every other node at most once',
    },
    {
      name: 'a proxy before each other node',
      given: { name: 'n1', initialCluster: FOUNDERS, peerProxies: 'n2=a:1,n3=a:2' },
      says: undefined,
    },
    { name: 'a lone node without all roles', given: { roles: 'data' }, says: 'must be given (or --join)' },
    { name: 'a member without a port', given: { initialCluster: 'n1=a' }, says: 'expected name=host:port' },
  ];
  test.each(rows)('$name', ({ given, says }) => {
    if (says === undefined) expect(problems(given)).toEqual([]);
    else expect(problems(given).join('\n')).toContain(says);
  });
});

test('others are told the listening address unless an advertised one is given', () => {
  const options = parseOptions(nodeSchema, { flags: { advertisePeer: 'db1:9000' } });
  expect(advertised(options)).toEqual({
    client: { host: '127.0.0.1', port: 7480 },
    peer: { host: 'db1', port: 9000 },
    http: { host: '127.0.0.1', port: 7482 },
  });
});

test('HTTP clients may ask for a node by its listening and advertised names, and by those allowed', () => {
  const flags = {
    ...{
      ...listening('n1.internal'),
      insecure: 'clients,peers,anonymous',
      advertiseClient: '10.0.0.1:80',
      advertiseHttp: 'Web.Example:80',
    },
    ...{ advertisePeer: '[2001:db8::1]:81', healthListen: 'probe.internal:7483', httpAllowedHosts: 'LB.example.' },
  };
  const names = ['n1.internal', 'web.example', 'probe.internal', 'lb.example', '10.0.0.1'];
  expect(httpNames(parseOptions(nodeSchema, { flags }))).toEqual(new Set(names));
});

describe('the variables that Kubernetes makes for services in the pods of a node', () => {
  const services = ['', '-client', '-peer', '-http', '-health', '-data', '-name', '-log', '-tls', '-node', '-cluster'];
  test.each(services)('do no harm if a service is named remora%s', (rest) => {
    const name = `remora${rest}`.toUpperCase().replaceAll('-', '_');
    const ports = { CLIENT: 7480, PEER: 7481, HTTP: 7482, HEALTH: 7483 };
    const env = Object.fromEntries(
      Object.entries(ports).flatMap(([port, number]) => [
        [`${name}_SERVICE_HOST`, '10.96.0.7'],
        [`${name}_SERVICE_PORT`, String(number)],
        [`${name}_SERVICE_PORT_${port}`, String(number)],
        [`${name}_PORT`, `tcp://10.96.0.7:${number}`],
        [`${name}_PORT_${number}_TCP`, `tcp://10.96.0.7:${number}`],
        [`${name}_PORT_${number}_TCP_PROTO`, 'tcp'],
        [`${name}_PORT_${number}_TCP_PORT`, String(number)],
        [`${name}_PORT_${number}_TCP_ADDR`, '10.96.0.7'],
      ]),
    );
    expect(parseOptions(nodeSchema, { env })).toEqual(parseOptions(nodeSchema, {}));
  });
});

test('nodes of a local cluster are ten ports apart', () => {
  expect(localPorts(7480, 3)).toEqual({ client: 7500, peer: 7501, http: 7502, health: 7503 });
});

const QUIET: Shell = {
  env: {},
  out() {},
  raw() {},
  err() {},
  shown: false,
  terminal: false,
  ask: async () => undefined,
  askSecret: async () => undefined,
  input: async () => '',
};

describe('the command line', () => {
  async function run(args: readonly string[], env: Record<string, string> = {}): Promise<string> {
    const lines: string[] = [];
    const say = (text: string | Uint8Array): unknown => lines.push(String(text));
    const shell = { ...QUIET, env, out: say, raw: say, err: say };
    const loadStartNode = () => Promise.reject(new Error('no node is started here'));
    const program = await createProgram({ shell, loadStartNode });
    await program.parseAsync([...args], { from: 'user' });
    return lines.join('\n');
  }

  test('what --print-options prints reads back as the same options', async () => {
    const args = [
      'node',
      '--name',
      'n2',
      '--initial-cluster',
      FOUNDERS,
      '--checkpoint-bytes',
      '1.5MiB',
      '--insecure',
      'peers',
    ];
    const text = await run([...args, '--print-options'], { REMORA_LOG_LEVEL: 'debug' });
    const options = parseOptions(nodeSchema, { file: parseConfig('printed', text) });
    expect(options).toMatchObject({ name: 'n2', checkpointBytes: 1_572_864, insecure: ['peers'], logLevel: 'debug' });
    expect(options.initialCluster[1]).toEqual({ name: 'n2', peer: { host: '10.0.0.2', port: 7481 } });
  });

  test('a wrong flag is refused with a suggestion', async () => {
    await expect(run(['node', '--nam', 'x'])).rejects.toMatchObject({ code: 'commander.unknownOption' });
    await expect(run(['node', '--log-level', 'loud'])).rejects.toThrow('expected one of debug, info, warn, error');
  });

  test('has the command that is named, and all of them where none is', async () => {
    const loadStartNode = () => Promise.reject(new Error('unused'));
    const commandsWith = async (name: string) =>
      (await createProgram({ shell: QUIET, loadStartNode }, name)).commands.map((command) => command.name());
    expect(await commandsWith('lock')).toEqual(['lock']);
    expect(await commandsWith('--help')).toContain('admin');
    expect(await commandsWith('constructor')).toEqual(await commandsWith('--help'));
  });

  test('every option stands in the help text with its variable', async () => {
    const loadStartNode = () => Promise.reject(new Error('unused'));
    const program = await createProgram({ shell: QUIET, loadStartNode });
    const help = program.commands.find((command) => command.name() === 'node')?.helpInformation() ?? '';
    for (const option of ['--data-dir <path>', 'REMORA_ELECTION_TIMEOUT', '--roles <master|data|gateway>,...']) {
      expect(help).toContain(option);
    }
  });
});

describe('the configuration file', () => {
  test('a wrong value is named with its line', () => {
    const file = parseConfig('remora.yaml', '# a node\nname: n1\nlog-level: loud\n');
    expect(() => parseOptions(nodeSchema, { file })).toThrow('remora.yaml:3 (log-level): invalid value "loud"');
  });

  test('JSON works as well, with lists', () => {
    const file = parseConfig('remora.json', '{ "name": "n9", "roles": ["data"], "join": ["a:1", "b:2"] }');
    const options = parseOptions(nodeSchema, { file });
    expect(options.roles).toEqual(['data']);
    expect(options.join).toHaveLength(2);
  });

  test.each(['a: [', '- list', 'a: 1\na: 2'])('what is not a map of options is refused: %s', (text) => {
    expect(() => parseConfig('remora.yaml', text)).toThrow('remora.yaml');
  });
});

function listening(host: string) {
  return { clientListen: `${host}:7480`, peerListen: `${host}:7481`, httpListen: `${host}:7482` };
}
